"""Slurm's texts about accelerators: gres of nodes and jobs, and TRES. Pure.

Seen forms: `gpu:h100:8(S:0-1)`, `gpu:h100:4(IDX:0-1,6)`, `gpu:2`, `gpu(IDX:0)`, `shard:3(IDX:1)`,
`shard:3(0/4,3/4)` (24.11: what is given out of each card in turn), `gres:gpu:h100:2`, `gres/gpu:h100:2`,
`(null)`, `N/A`; several separated by commas.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from inventory.drivers.clusters.readings import Accelerators, CardBinding, CardKind
from inventory.drivers.clusters.slurm.hostlist import HostlistError, ranges, split_outside

_ITEM = re.compile(r"^(?:gres[:/])?(?P<words>[^()]*)(?:\((?P<note>.*)\))?$", re.DOTALL)
_COUNT = re.compile(r"^(\d+)([KMG]?)$", re.ASCII)
_SHARED_OUT = re.compile(r"^\d+/\d+(,\d+/\d+)*$", re.ASCII)
_MULTIPLES = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}
_MIG = re.compile(r"\dg\.\d+gb", re.IGNORECASE)
_NAMES = {"gpu": CardKind.CARD, "shard": CardKind.SHARD, "mps": CardKind.MPS}


@dataclass(frozen=True, slots=True)
class Gres:
    """One item: `indices` is None where the text names none, empty for `IDX:N/A`."""

    kind: CardKind
    type: str
    count: int
    indices: tuple[int, ...] | None


def parse_gres(text: str | None) -> tuple[Gres, ...]:
    """The accelerators in a text; other gres (licences, network) and broken items are left out."""
    if not text or text in ("(null)", "N/A"):
        return ()
    items = (_parse_item(item) for item in split_outside(text, "(", ")"))
    return tuple(item for item in items if item is not None)


def _parse_item(text: str) -> Gres | None:
    match = _ITEM.match(text)
    name, *rest = match["words"].split(":") if match else [""]
    kind = _NAMES.get(name)
    if match is None or kind is None:
        return None
    indices = _indices(match["note"] or "")
    count = _count(rest[-1]) if rest else None
    if rest and count is not None:
        rest = rest[:-1]
    if count is None:
        count = len(indices) if indices is not None else 1
    card_type = ":".join(rest)
    if kind is CardKind.CARD and _MIG.search(card_type):
        kind = CardKind.MIG
    return Gres(kind, card_type, count, indices)


def _count(text: str) -> int | None:
    match = _COUNT.match(text)
    return int(match[1]) * _MULTIPLES[match[2]] if match else None


def _indices(note: str) -> tuple[int, ...] | None:
    if _SHARED_OUT.match(note):
        return tuple(place for place, part in enumerate(note.split(",")) if not part.startswith("0/"))
    label, _, listed = note.partition(":")
    if label != "IDX":
        return None
    try:
        return tuple(int(number) for number in ranges(listed))
    except HostlistError:
        return ()


def bindings_of(node: str, text: str | None) -> tuple[CardBinding, ...]:
    """What a job holds on one node, from its gres text there; nothing held gives nothing."""
    return tuple(
        CardBinding(node=node, kind=item.kind, type=item.type, count=item.count, indices=item.indices or ())
        for item in parse_gres(text)
        if item.count
    )


def accelerators_of(total: str | None, used: str | None) -> tuple[Accelerators, ...]:
    """The accelerators of a node with what is given out of each. MPS is given out in shares that the
    node's text counts in cards (22.05): its `used` stays None."""
    given: dict[tuple[CardKind, str], tuple[int, tuple[int, ...]]] = {}
    for item in parse_gres(used):
        count, indices = given.get((item.kind, item.type), (0, ()))
        given[item.kind, item.type] = (count + item.count, (*indices, *(item.indices or ())))
    wanted: dict[tuple[CardKind, str], int] = {}
    for item in parse_gres(total):
        wanted[item.kind, item.type] = wanted.get((item.kind, item.type), 0) + item.count
    found = []
    for (kind, card_type), count in wanted.items():
        if not count:
            continue  # Slurm lists shares for every card type, most of them 0
        taken, indices = given.get((kind, card_type), (None, ()))
        shown = taken if kind in (CardKind.CARD, CardKind.MIG) else None
        found.append(Accelerators(kind=kind, type=card_type, total=count, used=shown, used_indices=indices))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class CardCount:
    """Cards and shares in a TRES list."""

    cards: int = 0
    by_type: tuple[tuple[str, int], ...] = ()
    shares: int = 0


def parse_tres(text: str | None) -> dict[str, int]:
    """The gres of a TRES text such as `cpu=2,mem=2000M,gres/gpu=8,gres/gpu:h100=8`, by name after `gres/`."""
    found: dict[str, int] = {}
    for part in (text or "").split(","):
        name, _, number = part.partition("=")
        count = _count(number)
        if name.startswith("gres/") and count is not None:
            found[name.removeprefix("gres/")] = count
    return found


def count_cards(tres: Mapping[str, int]) -> CardCount:
    """Cards of a TRES list: the untyped number holds the typed ones, so only without it they are added up."""
    by_type = tuple(sorted((name[4:], count) for name, count in tres.items() if name.startswith("gpu:")))
    cards = tres.get("gpu")
    if cards is None:
        cards = sum(count for _, count in by_type)
    shares = tres.get("shard")
    if shares is None:
        shares = sum(count for name, count in tres.items() if name.startswith("shard:"))
    return CardCount(cards, by_type, shares)


def accounts_for_all(bindings: Iterable[CardBinding], counted: CardCount) -> bool:
    """Whether bindings name every card and share that is allocated."""
    cards = shares = 0
    for binding in bindings:
        if binding.kind in (CardKind.CARD, CardKind.MIG):
            cards += binding.count
            if len(binding.indices) != binding.count:
                return False
        else:
            shares += binding.count if binding.kind is CardKind.SHARD else 0
            if not binding.indices:
                return False
    return cards == counted.cards and shares == counted.shares
