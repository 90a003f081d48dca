"""Topics that a page can follow, and the channel groups that make them dirty.

A topic is what a person looks at ("node:<id>"); a group is what changes ("samples"). Several groups
touch one topic, so writers name what they changed and know nothing of pages.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from sensaka.live import paths


class Change(StrEnum):
    """What writers announce. The value is the channel group's name."""

    SAMPLES = "samples"
    TREE = "tree"
    COLLECTORS = "collectors"
    DISCOVERY = "discovery"
    JOBS = "jobs"
    REQUESTS = "requests"


_FOLLOWS: dict[str, tuple[Change, ...]] = {
    "fleet": (Change.SAMPLES, Change.TREE, Change.COLLECTORS, Change.JOBS),
    "node": (Change.SAMPLES, Change.TREE, Change.COLLECTORS, Change.JOBS),
    "card": (Change.SAMPLES, Change.TREE, Change.JOBS),
    "cards": (Change.SAMPLES, Change.TREE),
    "nodes": (Change.SAMPLES, Change.TREE, Change.COLLECTORS, Change.JOBS),
    "collectors": (Change.COLLECTORS, Change.TREE),
    "branches": (Change.SAMPLES, Change.TREE),
    "discovery": (Change.DISCOVERY,),
    "clusters": (Change.JOBS, Change.TREE, Change.SAMPLES),
    "cluster": (Change.JOBS, Change.TREE, Change.SAMPLES),
    "jobs": (Change.JOBS,),
    "job": (Change.JOBS,),
    "work": (Change.REQUESTS,),
    "requests": (Change.REQUESTS,),
    "request": (Change.REQUESTS, Change.SAMPLES),
    "offers": (Change.REQUESTS, Change.TREE),
    "holdings": (Change.REQUESTS,),
    "idle": (Change.REQUESTS,),
}
_WITH_ID = frozenset({"node", "card", "discovery", "cluster", "job", "request"})
_WITH_LIST = frozenset({"cards", "nodes", "jobs", "requests"})
OWN = frozenset({"work", "requests", "request", "offers", "idle"})
"""What everybody may follow: each sees of it what is theirs. All else is for operators and auditors."""
_DEEPEST = 3  # a path of site, cluster and rack; below a node are cards
MOST_IDS = 200
"""Rows that a page of a list can follow; lists show at most 100."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A parsed topic: `kind` and an identifier (node, card ...), several (cards, nodes, jobs) or a path (branches)."""

    kind: str
    id: UUID | None = None
    ids: tuple[UUID, ...] = ()
    path: paths.Path = ()

    def __str__(self) -> str:
        if self.kind == "branches":
            return f"branches:{paths.written(self.path)}"
        named = [self.id] if self.id is not None else self.ids
        return f"{self.kind}:{','.join(map(str, named))}" if named else self.kind

    @property
    def own(self) -> bool:
        """Whether it shows each person what is theirs."""
        return self.kind in OWN

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes that make this topic worth reading again."""
        return _FOLLOWS[self.kind]


def parse(text: str) -> Topic | None:
    """The topic that a client named; None when there is no such topic."""
    kind, separator, identifiers = text.partition(":")
    if kind == "branches" and separator:
        path = paths.parse(identifiers)
        return None if path is None or len(path) > _DEEPEST else Topic(kind, path=path)
    if kind not in _FOLLOWS or kind == "branches" or (kind in _WITH_ID | _WITH_LIST) != bool(separator):
        return None
    if not separator:
        return Topic(kind)
    try:
        ids = tuple(UUID(part) for part in identifiers.split(",", MOST_IDS))
    except ValueError:
        return None
    if kind in _WITH_LIST:
        return Topic(kind, ids=ids)
    return Topic(kind, ids[0]) if len(ids) == 1 else None


def affected(topics: Iterable[Topic], change: str) -> list[Topic]:
    """Those of `topics` that a change touches."""
    return [topic for topic in topics if change in topic.changes]
