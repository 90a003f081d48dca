"""Which node an exporter's page speaks of: by the host it names, by the cards it lists, else a new one."""

from django.db.models import Q

from inventory.models import Exporter, Node
from inventory.observations import NodeReading
from inventory.rules.identity import known_text
from inventory.services.nodes import find_or_create_node
from inventory.services.observe.joining import node_that_lists
from inventory.services.observe.recording import latest


def bind_exporter(*, exporter: Exporter, reading: NodeReading) -> Node:
    """Ties the exporter to its node. The caller holds the exporter's row and a transaction.

    A page that names another host than before is bound anew; otherwise the tie stays.
    """
    hostname = known_text(reading.hostname)[:200]
    same_host = not hostname or not exporter.hostname or hostname == exporter.hostname
    if exporter.node is not None and same_host:
        return exporter.node
    node = _by_hostname(exporter, hostname) or node_that_lists(reading.cards, source="exporter")
    if node is None:
        node = find_or_create_node(
            hostname=hostname or exporter.url.split("//")[-1].split("/")[0],
            site=exporter.site,
            cluster=exporter.cluster,
            rack=exporter.rack,
            at=latest(reading.observed_at),
            source="exporter",
            simulated=exporter.simulated,
        )
    exporter.node = node
    exporter.save(update_fields=["node", "updated_at"])
    return node


def _by_hostname(exporter: Exporter, hostname: str) -> Node | None:
    """The one node of the exporter's site that has this name; None when none or several have it."""
    if not hostname:
        return None
    short = hostname.split(".")[0]
    named = Q(hostname__iexact=hostname) | Q(name__iexact=hostname) | Q(hostname__iexact=short) | Q(name__iexact=short)
    nodes = list(Node.objects.filter(named, site=exporter.site).exclude(state="retired")[:3])
    exact = [node for node in nodes if hostname.lower() in (node.hostname.lower(), node.name.lower())]
    best = exact or nodes
    return best[0] if len(best) == 1 else None
