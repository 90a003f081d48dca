"""The frozen vocabulary of reconciliation: what is known, what a source looked at, what follows."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from inventory.rules.identity import CardIdentity

# The lower, the more a source is trusted about places and presence.
PRECEDENCE = {"agent": 0, "exporter": 1, "bmc": 2}


@dataclass(frozen=True, slots=True)
class Place:
    """A slot and PCI address on a node; either text may be empty."""

    node: UUID
    slot: str = ""
    pci_address: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """The last time one collector saw a card, and where it said that it was.

    An agent reports only what changes: what its newest report says holds as long as the agent is
    heard of, until `alive_at`.
    """

    source: str
    collector: UUID
    node: UUID
    at: datetime
    slot: str = ""
    pci_address: str = ""
    alive_at: datetime | None = None

    @property
    def valid_at(self) -> datetime:
        """Until when this sighting is known to hold."""
        return max(self.at, self.alive_at) if self.alive_at is not None else self.at


@dataclass(frozen=True, slots=True)
class KnownSlice:
    """An open slice of a known card."""

    id: UUID
    uuid: str
    profile: str
    instance_id: str = ""


@dataclass(frozen=True, slots=True)
class KnownCard:
    """A card of the tree as it stands before a reading is applied."""

    id: UUID
    identity: CardIdentity
    node: UUID | None
    state: str
    state_since: datetime
    first_seen_at: datetime
    vendor: str = ""
    conflict: bool = False
    sightings: tuple[Seen, ...] = ()
    slices: tuple[KnownSlice, ...] = ()

    @property
    def stands(self) -> bool:
        """Whether the card is taken to be in its place."""
        return self.state in ("present", "failed")

    def place(self) -> Place | None:
        """Where the card is said to be."""
        return Place(self.node, self.identity.slot, self.identity.pci_address) if self.node else None


@dataclass(frozen=True, slots=True)
class ObservedSlice:
    """A slice in a reading."""

    uuid: str
    profile: str
    instance_id: str = ""


@dataclass(frozen=True, slots=True)
class ObservedCard:
    """A card in a reading. `slices` is None when the source says nothing about slices."""

    identity: CardIdentity
    vendor: str = ""
    lost: bool = False
    slices: tuple[ObservedSlice, ...] | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """One reading of one node by one collector.

    `complete`: the source enumerated every card, so one that it used to list and does not list is
    gone. `lost`: UUIDs, serials or PCI addresses of cards that were counted but do not answer.
    `last_at`: the time of this collector's newest reading so far. `senior_at`: the time of the last
    reading of this node by a source that is trusted more. Sightings younger than `freshness`
    (seconds) before `at` count as current.
    """

    node: UUID
    source: str
    collector: UUID
    at: datetime
    cards: tuple[ObservedCard, ...] = ()
    complete: bool = True
    lost: frozenset[str] = frozenset()
    last_at: datetime | None = None
    senior_at: datetime | None = None
    freshness: int = 90

    @property
    def in_band(self) -> bool:
        """Whether the source runs on the node itself."""
        return self.source != "bmc"

    def fresh(self, at: datetime) -> bool:
        """Whether something seen at that time still counts as current."""
        return (self.at - at).total_seconds() <= self.freshness


@dataclass(frozen=True, slots=True)
class Appear:
    """A card that nobody knew. `past`: the reading is older than what is known, so it is only history."""

    index: int
    identity: CardIdentity
    place: Place
    lost: bool = False
    past: bool = False


@dataclass(frozen=True, slots=True)
class Identify:
    """A card gained a UUID or serial that was not known before."""

    card: UUID
    uuid: str
    serial: str


@dataclass(frozen=True, slots=True)
class Join:
    """`other` turned out to be the same card: it is retired and the row with the UUID goes on."""

    card: UUID
    other: UUID


@dataclass(frozen=True, slots=True)
class Supersede:
    """A record that only a BMC made can't be matched to a list of the operating system: it is closed."""

    card: UUID


@dataclass(frozen=True, slots=True)
class Move:
    """A card is somewhere else than it was. `returned`: it was missing in between."""

    card: UUID
    index: int
    before: Place
    after: Place
    returned: bool = False


@dataclass(frozen=True, slots=True)
class Relocate:
    """A better name of the same place, or a renumbered bus: nothing happened to the card."""

    card: UUID
    place: Place


@dataclass(frozen=True, slots=True)
class Vanish:
    """A card is no longer where it was; `replaced_by` is the index of the card that has its place."""

    card: UUID
    place: Place
    replaced_by: int | None = None


@dataclass(frozen=True, slots=True)
class Return:
    """A missing card is back where it was."""

    card: UUID
    index: int
    place: Place


@dataclass(frozen=True, slots=True)
class Fail:
    """A card is there but does not answer."""

    card: UUID
    place: Place


@dataclass(frozen=True, slots=True)
class Recover:
    """A card that did not answer answers again."""

    card: UUID
    place: Place


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two nodes report one identity at the same time."""

    card: UUID
    nodes: tuple[UUID, UUID]


@dataclass(frozen=True, slots=True)
class ConflictEnd:
    """Only one node still reports the identity."""

    card: UUID


@dataclass(frozen=True, slots=True)
class OpenSlice:
    """A slice that was not open before, on the observed card at `index`."""

    index: int
    slice: int


@dataclass(frozen=True, slots=True)
class CloseSlice:
    """A slice that is no longer there."""

    card: UUID
    slice: UUID


Change = (
    Appear
    | Identify
    | Join
    | Supersede
    | Move
    | Relocate
    | Vanish
    | Return
    | Fail
    | Recover
    | Conflict
    | ConflictEnd
    | OpenSlice
    | CloseSlice
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What follows from a look. `seen` maps indexes to known cards for what this node really has;
    `unmatched` are observed cards that stand for known ones but can't be told which."""

    seen: dict[int, UUID] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    unmatched: tuple[int, ...] = ()
    stale: bool = False
