"""Which node of ours a scheduler's node is.

In this order: by what identifies the server (machine id, system UUID), by the host name that the server
itself tells, by what it was before, by host name or name. Names count within the scheduler's own
cluster only, so clusters with the same node names never mix. What several could be is none of them.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from inventory.rules.identity import NodeIdentity, system_uuid_spellings


@dataclass(frozen=True, slots=True)
class SeenNode:
    """A node as a scheduler lists it; an identity where it tells one."""

    name: str
    hostname: str = ""
    identity: NodeIdentity = field(default_factory=NodeIdentity)


@dataclass(frozen=True, slots=True)
class OurNode:
    """A node of ours. `tells_itself`: its host name comes from the server or its BMC, not from a scheduler."""

    id: UUID
    name: str
    hostname: str = ""
    in_cluster: bool = True
    tells_itself: bool = False
    identity: NodeIdentity = field(default_factory=NodeIdentity)


_Keys = Callable[[SeenNode], Iterable[str]]
_OurKeys = Callable[[OurNode], Iterable[str]]


def match_nodes(
    seen: Iterable[SeenNode], ours: Iterable[OurNode], bound: Mapping[str, UUID]
) -> dict[str, UUID | None]:  # fmt: skip
    """For each of the scheduler's names our node, None where there is none yet.

    `bound` is what the names were before. No two names get one node.
    """
    left = {node.name: node for node in seen}
    free = {node.id: node for node in ours}
    found: dict[str, UUID | None] = {}

    def settle(pairs: Iterable[tuple[str, UUID]]) -> None:
        for name, key in pairs:
            if name in left and key in free and not _contradict(left[name], free[key]):
                found[name] = key
                del left[name], free[key]

    settle(_pairs(left, free, _identities, _our_identities))
    settle(_pairs(left, free, _hostname, _told_hostname))
    settle([(name, key) for name, key in bound.items() if name in left])
    settle(_pairs(left, free, _hostname, _hostname_here))
    settle(_pairs(left, free, _name, _names_here))
    settle(_pairs(left, free, _short, _short_here))
    return found | dict.fromkeys(left)


def _contradict(seen: SeenNode, ours: OurNode) -> bool:
    return seen.identity.contradicts(ours.identity)


def _pairs(
    seen: Mapping[str, SeenNode], ours: Mapping[UUID, OurNode], keys: _Keys, our_keys: _OurKeys
) -> list[tuple[str, UUID]]:
    """Those that share a key with exactly one of the other side."""
    names: dict[str, set[str]] = defaultdict(set)
    ids: dict[str, set[UUID]] = defaultdict(set)
    for node in seen.values():
        for key in keys(node):
            names[key].add(node.name)
    for own in ours.values():
        for key in our_keys(own):
            ids[key].add(own.id)
    return [
        (next(iter(found)), next(iter(ids[key])))
        for key, found in names.items()
        if len(found) == 1 and len(ids.get(key, ())) == 1
    ]


def _of_identity(identity: NodeIdentity) -> list[str]:
    keys = [f"uuid {form}" for form in system_uuid_spellings(identity.uuid)]
    return [*keys, f"machine {identity.machine_id}"] if identity.machine_id else keys


def _identities(node: SeenNode) -> list[str]:
    return _of_identity(node.identity)


def _our_identities(node: OurNode) -> list[str]:
    return _of_identity(node.identity)


def _hostname(node: SeenNode) -> list[str]:
    name = node.hostname or node.name
    return [name.lower()]


def _name(node: SeenNode) -> list[str]:
    return [node.name.lower()]


def _short(node: SeenNode) -> list[str]:
    return [(node.hostname or node.name).lower().partition(".")[0]]


def _told_hostname(node: OurNode) -> list[str]:
    return [node.hostname.lower()] if node.in_cluster and node.tells_itself and node.hostname else []


def _hostname_here(node: OurNode) -> list[str]:
    return [node.hostname.lower()] if node.in_cluster and node.hostname else []


def _names_here(node: OurNode) -> list[str]:
    return [node.name.lower()] if node.in_cluster else []


def _short_here(node: OurNode) -> list[str]:
    if not node.in_cluster:
        return []
    return list({name.lower().partition(".")[0] for name in (node.hostname, node.name) if name})
