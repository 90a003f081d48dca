"""Nodes, partitions and reservations: from Slurm's entries to readings. Pure."""

from inventory.drivers.clusters.marks import owner_of
from inventory.drivers.clusters.readings import ClusterNode, Queue, Reservation
from inventory.drivers.clusters.slurm import gres, wire
from inventory.drivers.clusters.slurm.jobs import nodes_of
from inventory.drivers.clusters.slurm.states import is_cordoned, node_load, responds, words_of

_MEBIBYTE = 1024**2  # RealMemory (slurm.conf)
_ALL = frozenset({"", "ALL", "(null)", "N/A"})


def listed(value: wire.Words) -> tuple[str, ...]:
    """The parts of a list that is text with commas in the older form."""
    parts = value.split(",") if isinstance(value, str) else value or []
    return tuple(part.strip() for part in parts if part.strip() not in _ALL)


def reading_of_node(node: wire.WireNode) -> ClusterNode:
    """One node."""
    words = (*words_of(node.state), *words_of(node.state_flags))
    memory = wire.integer(node.real_memory)
    reason = (node.reason or "")[:2000]
    return ClusterNode(
        name=node.name,
        hostname=node.hostname or "",
        address=node.address or "",
        load=node_load(words),
        raw_state="+".join(words)[:200],
        cordoned=is_cordoned(words),
        responding=responds(words),
        reason=reason,
        reason_by=(node.reason_set_by_user or "") if reason else "",
        reason_at=wire.moment(node.reason_changed_at) if reason else None,
        owner=owner_of(reason),
        queues=listed(node.partitions),
        features=listed(node.features),
        accelerators=gres.accelerators_of(node.gres, node.gres_used),
        cpus=node.cpus,
        memory=None if memory is None else memory * _MEBIBYTE,
        version=node.slurmd_version or node.version or "",
        booted_at=wire.moment(node.boot_time),
    )


def reading_of_queue(partition: wire.WirePartition) -> Queue:
    """One partition, of either form. The newer form does not tell which is the default."""
    new = not isinstance(partition.nodes, str) and partition.nodes is not None
    nodes = partition.nodes.configured if isinstance(partition.nodes, wire.Assigned) else partition.nodes
    state = partition.partition.state if partition.partition else partition.state
    limit = partition.maximums.time if partition.maximums else partition.max_time_limit
    rank = partition.priority.tier if partition.priority else partition.priority_tier
    accounts = partition.accounts.allowed if partition.accounts else partition.allowed_accounts
    minutes = wire.integer(limit)
    return Queue(
        name=partition.name,
        nodes=nodes_of(nodes),
        up="UP" in words_of(state),
        default=None if new else "default" in (partition.flags or ()),
        time_limit=None if minutes is None else minutes * 60,
        priority=wire.integer(rank),
        accounts=listed(accounts),
    )


def reading_of_reservation(reservation: wire.WireReservation) -> Reservation:
    """One reservation."""
    tres = gres.parse_tres(reservation.tres)
    flags = tuple(reservation.flags or ())
    return Reservation(
        name=reservation.name,
        nodes=nodes_of(reservation.node_list),
        starts_at=wire.moment(reservation.start_time),
        ends_at=wire.moment(reservation.end_time),
        users=listed(reservation.users),
        accounts=listed(reservation.accounts),
        flags=flags,
        cards=gres.count_cards(tres).cards if tres else None,
        maintenance="MAINT" in flags,
    )
