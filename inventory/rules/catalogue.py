"""Which catalogue entry a card is, from what it says about itself.

Order: PCI id with subsystem, PCI id, then the name as normalised words. Names change with driver
releases ("A100-SXM4-40GB" became "NVIDIA A100-SXM4-40GB") and BMCs spell them their own way, so the
PCI id decides where there is one; memory only decides between entries that are otherwise equal.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# Words that vendors add and drop; none of them tells two products apart.
_NOISE = frozenset(
    {
        *("nvidia", "tesla", "amd", "instinct", "intel", "habana", "labs", "huawei", "corporation", "r", "tm", "c"),
        *("data", "center", "datacenter", "gpu", "graphics", "ai", "accelerator", "processor", "oam", "generation"),
        "shared",
    }
)
_WORDS = re.compile(r"[a-z0-9.]+")
_SPACED_SIZE = re.compile(r"(\d+)\s+(?=gi?b\b)")
# One word may be no more than a family ("H100"): it must then be the whole name.
_FEWEST_WORDS = 2


@dataclass(frozen=True, slots=True)
class Entry:
    """What is matched of a catalogue row. `pci_ids` are `vendor:device` or, where a subsystem tells
    two boards with one id apart, `vendor:device:subvendor:subdevice`; memory in bytes."""

    key: str
    name_strings: tuple[str, ...] = ()
    pci_ids: tuple[str, ...] = ()
    memory: int | None = None


def words(name: str) -> frozenset[str]:
    """The words of a name that tell products apart. What follows "MIG" describes a slice, not a card."""
    text = _SPACED_SIZE.sub(r"\1", name.lower().replace("(r)", " ").replace("(tm)", " "))
    found = _WORDS.findall(text.replace("gib", "gb"))
    if "mig" in found:
        found = found[: found.index("mig")]
    return frozenset(word for word in found if word not in _NOISE)


def pci_key(text: str) -> str:
    """`10de:2330` from any case, with or without `0x`."""
    return ":".join(part.removeprefix("0x").zfill(4) for part in text.strip().lower().split(":")) if text else ""


def match(
    entries: Iterable[Entry], *, name: str = "", pci_id: str = "", subsystem_id: str = "", memory: int | None = None
) -> Entry | None:
    """The entry for a card, or None when nothing fits or several fit equally well."""
    all_entries = list(entries)
    device = pci_key(pci_id)
    if device:
        whole = f"{device}:{pci_key(subsystem_id)}" if subsystem_id else ""
        for wanted in (whole, device):
            found = [one for one in all_entries if wanted and wanted in map(pci_key, one.pci_ids)]
            if found:
                return _one_of(_named(found, name, exactly=False) or found, memory)
    return _one_of(_named(all_entries, name, exactly=True) or _named(all_entries, name, exactly=False), memory)


def _named(entries: Sequence[Entry], name: str, *, exactly: bool) -> list[Entry]:
    """Entries that carry the name; otherwise those whose most words are all in it."""
    said = words(name)
    if not said:
        return []
    same = [one for one in entries if any(words(text) == said for text in one.name_strings)]
    if same or exactly:
        return same
    fits = [(len(found), one) for one in entries for text in one.name_strings if (found := words(text)) <= said]
    fits = [(count, one) for count, one in fits if count >= _FEWEST_WORDS]
    most = max((count for count, _ in fits), default=0)
    return list({one.key: one for count, one in fits if count == most}.values())


def _one_of(found: Sequence[Entry], memory: int | None) -> Entry | None:
    """The only one, or the one whose memory is nearest to the card's."""
    if len(found) == 1:
        return found[0]
    sized = [(abs(one.memory - memory), one) for one in found if one.memory is not None] if memory else []
    if not sized:
        return None
    nearest = min(distance for distance, _ in sized)
    best = [one for distance, one in sized if distance == nearest]
    return best[0] if len(best) == 1 else None
