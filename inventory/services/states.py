"""Steps of a node's life that follow from cordons: draining, at rest, back in service."""

from collections.abc import Iterable
from datetime import datetime

from inventory.models import JournalKind, Node
from inventory.rules.lifecycle import NODE
from inventory.services.journal import Note


def step(
    nodes: Iterable[Node], event: str, *, why: str, at: datetime, source: str, notes: list[Note]
) -> list[Node]:  # fmt: skip
    """Those of the nodes whose state allows the event take it, with a journal entry. Returns them.

    `why` ends the sentence. The caller holds the transaction and writes the notes.
    """
    moved = [node for node in {node.id: node for node in nodes}.values() if NODE.allows(node.state, event)]
    by_state: dict[str, list[Node]] = {}
    for node in moved:
        by_state.setdefault(node.state, []).append(node)
    for before, group in by_state.items():
        after = NODE.target(before, event)
        # Conditional: a node that somebody moved meanwhile is left where they put it.
        Node.objects.filter(pk__in=[node.id for node in group], state=before).update(state=after)
        for node in group:
            node.state = after
            text = f"Node {node.name} went from {before} to {after}: {why}."
            detail = {"before": before, "after": after}
            notes.append(Note(JournalKind.NODE_STATE, text, at, node.id, None, source, detail, node.cluster_id))
    return moved


def back_in_service(nodes: Iterable[Node], *, at: datetime, source: str, notes: list[Note]) -> list[Node]:
    """Nodes that a drain had taken out serve again."""
    return step(nodes, "resume", why="it was returned to scheduling", at=at, source=source, notes=notes)
