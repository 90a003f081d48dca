"""Which cards of ours a scheduler means: by UUID, else by PCI address, else by number. Nothing is guessed.

A number of a whole or shared card is its minor number, so it is only as good as the last in-band
reading of the node: after a restart numbers may have moved, until the node was read again. A number of
a MIG instance is a place in the node's own table of gres, which nobody tells us; such instances are
known only when the run holds all of that profile on the node.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from inventory.rules.identity import card_uuid, pci_address, uuid_key
from inventory.rules.jobs import CardKind


@dataclass(frozen=True, slots=True)
class SliceHere:
    """An open slice of a card."""

    id: UUID
    uuid: str
    profile: str


@dataclass(frozen=True, slots=True)
class CardHere:
    """A card that stands on the node now."""

    id: UUID
    uuid: str = ""
    pci_address: str = ""
    minor: int | None = None
    slices: tuple[SliceHere, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeCards:
    """The cards of one node. `numbered`: their minor numbers were read since it was last started.

    `read`: they were read in-band at all; those that only a BMC told have no minor numbers.
    """

    name: str
    cards: tuple[CardHere, ...] = ()
    numbered: bool = True
    read: bool = True


@dataclass(frozen=True, slots=True)
class Binding:
    """What the scheduler says of one node: a kind, how many, and which, by one of three ways."""

    kind: CardKind
    type: str = ""
    count: int = 0
    uuids: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    indices: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """One thing that is held: card and slice are None when it isn't known which."""

    kind: CardKind
    type: str
    card: UUID | None = None
    slice: UUID | None = None
    index: int | None = None
    shares: int | None = None


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a binding holds, and why some of it is unknown ("" when all is known)."""

    held: tuple[Held, ...]
    unknown: str = ""


def resolve(binding: Binding, node: NodeCards) -> Resolved:
    """The cards or slices of a binding on its node. As many as it counts, known or not."""
    if binding.uuids:
        return _named(binding, node, binding.uuids, {key: one for one in _all(node) for key in one.keys})
    if binding.addresses:
        by_address = {card.pci_address: _Thing((), card.id, None) for card in node.cards if card.pci_address}
        return _named(binding, node, tuple(pci_address(one) or one for one in binding.addresses), by_address)
    if binding.kind is CardKind.MIG:
        return _instances(binding, node)
    return _numbers(binding, node)


@dataclass(frozen=True, slots=True)
class _Thing:
    keys: tuple[str, ...]
    card: UUID
    slice: UUID | None


def _all(node: NodeCards) -> list[_Thing]:
    cards = [_Thing((uuid_key(card.uuid),), card.id, None) for card in node.cards if card.uuid]
    slices = [_Thing((uuid_key(one.uuid),), card.id, one.id) for card in node.cards for one in card.slices]
    return [*cards, *slices]


def _named(binding: Binding, node: NodeCards, names: Sequence[str], things: dict[str, _Thing]) -> Resolved:
    held, missing = [], []
    for name in names:
        # A shared card's replica is named uuid::number (NVIDIA's device plugin).
        thing = things.get(name) or things.get(uuid_key(card_uuid(name.partition("::")[0])))
        if thing is None:
            missing.append(name)
        held.append(
            Held(binding.kind, binding.type, thing.card if thing else None, thing.slice if thing else None)
        )  # fmt: skip
    unknown = f"{missing[0]} is not known on node {node.name}" if missing else ""
    return _filled(binding, node, held, unknown)


def _numbers(binding: Binding, node: NodeCards) -> Resolved:
    """Whole cards and shared cards, by their minor numbers."""
    by_minor: dict[int, list[UUID]] = {}
    for card in node.cards:
        if card.minor is not None:
            by_minor.setdefault(card.minor, []).append(card.id)
    unknown = ""
    if binding.indices and not node.read:
        unknown = f"neither agent nor exporter has read the cards of node {node.name} yet"
    elif binding.indices and not node.numbered:
        unknown = f"node {node.name} was restarted, and its cards were not read since"
    shared = binding.kind in (CardKind.SHARD, CardKind.MPS)
    # Of shares on several cards the scheduler tells the sum only.
    shares = binding.count if shared and len(binding.indices) == 1 else None
    held = []
    for index in binding.indices:
        cards = by_minor.get(index, []) if node.read and node.numbered else []
        if len(cards) != 1:
            why = "two cards have" if cards else "no card is known with"
            unknown = unknown or f"{why} minor number {index} on node {node.name}"
        held.append(
            Held(binding.kind, binding.type, cards[0] if len(cards) == 1 else None, None, index, shares)
        )  # fmt: skip
    if shared:
        return Resolved(tuple(held), unknown or ("" if held else _untold(node)))
    return _filled(binding, node, held, unknown)


def _instances(binding: Binding, node: NodeCards) -> Resolved:
    """MIG instances by their places in a table that only the node has."""
    profile = binding.type.rpartition("_")[2].lower()
    fitting = [
        (card.id, one.id) for card in node.cards for one in card.slices if profile and one.profile.lower() == profile
    ]
    if binding.count and len(fitting) == binding.count:
        return Resolved(tuple(Held(binding.kind, binding.type, card, part) for card, part in fitting))
    held = [Held(binding.kind, binding.type, None, None, index) for index in binding.indices]
    places = ", ".join(str(index) for index in binding.indices)
    why = f"which MIG instances are {places} on node {node.name} stands in its own table of gres"
    return _filled(binding, node, held, why if places else "")


@dataclass(frozen=True, slots=True)
class Told:
    """A card or slice on which an agent or the kubelet saw a run's processes."""

    node: UUID
    card: UUID
    slice: UUID | None = None
    source: str = ""


def attribute(
    known: Collection[tuple[UUID, UUID | None]], told: Sequence[Told], *, lacking: int
) -> tuple[list[Told], str]:  # fmt: skip
    """What fills the gaps that the scheduler left, and why some are left ("" when none is).

    `known` are cards and slices that the scheduler told, `lacking` how many it did not. Processes on
    more things than are lacking leave it open which were given to the run: then none is taken.
    """
    new = [one for one in told if (one.card, one.slice) not in known]
    if len(new) > lacking:
        return [], f"its processes are on {len(new)} cards of which {lacking} can be its own"
    return new, "" if len(new) == lacking else f"its processes were seen on {len(new)} of {lacking}"


def _filled(binding: Binding, node: NodeCards, held: list[Held], unknown: str) -> Resolved:
    """With one entry for each that is counted and not told."""
    lacking = max(binding.count - len(held), 0)
    more = [Held(binding.kind, binding.type)] * lacking
    return Resolved((*held, *more), unknown or (_untold(node) if lacking else ""))


def _untold(node: NodeCards) -> str:
    return f"the scheduler does not tell which cards of node {node.name}"
