"""Topics that a page can follow, and the channel groups that make them dirty.

A topic is what a person looks at ("node:<id>"); a group is what changes ("samples"). Several groups
touch one topic, so writers name what they changed and know nothing of pages.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID


class Change(StrEnum):
    """What writers announce. The value is the channel group's name."""

    SAMPLES = "samples"
    TREE = "tree"
    COLLECTORS = "collectors"
    DISCOVERY = "discovery"


_FOLLOWS: dict[str, tuple[Change, ...]] = {
    "fleet": (Change.SAMPLES, Change.TREE, Change.COLLECTORS),
    "node": (Change.SAMPLES, Change.TREE, Change.COLLECTORS),
    "card": (Change.SAMPLES, Change.TREE),
    "collectors": (Change.COLLECTORS, Change.TREE),
    "discovery": (Change.DISCOVERY,),
}
_WITH_ID = frozenset({"node", "card", "discovery"})


@dataclass(frozen=True, slots=True)
class Topic:
    """A parsed topic: `kind`, and the identifier where the kind has one."""

    kind: str
    id: UUID | None = None

    def __str__(self) -> str:
        return self.kind if self.id is None else f"{self.kind}:{self.id}"

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes that make this topic worth reading again."""
        return _FOLLOWS[self.kind]


def parse(text: str) -> Topic | None:
    """The topic that a client named; None when there is no such topic."""
    kind, separator, identifier = text.partition(":")
    if kind not in _FOLLOWS or (kind in _WITH_ID) != bool(separator):
        return None
    if not separator:
        return Topic(kind)
    try:
        return Topic(kind, UUID(identifier))
    except ValueError:
        return None


def affected(topics: Iterable[Topic], change: str) -> list[Topic]:
    """Those of `topics` that a change touches."""
    return [topic for topic in topics if change in topic.changes]
