"""Why a card runs slower than it could, in words.

The bits are those of nvmlDeviceGetCurrentClocksEventReasons (NVML, `nvmlClocksEventReason*`), which the
DCGM field CLOCKS_EVENT_REASONS repeats. Idle and the limits that somebody set on purpose are no trouble.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reason:
    """One bit: its words, and "" (harmless), "warn" or "bad"."""

    words: str
    level: str = ""


REASONS: dict[int, Reason] = {
    0x1: Reason("idle"),
    0x2: Reason("clocks set by an administrator"),
    0x4: Reason("power cap"),
    0x8: Reason("hardware slowdown", "bad"),
    0x10: Reason("synchronised with other cards"),
    0x20: Reason("thermal slowdown by the driver", "warn"),
    0x40: Reason("thermal slowdown by the hardware", "bad"),
    0x80: Reason("power brake", "bad"),
    0x100: Reason("clocks of a display"),
    0x200: Reason("board limit", "warn"),
    0x400: Reason("reliability limit", "warn"),
}
_RANK = ("", "warn", "bad")


def reasons(mask: int) -> tuple[Reason, ...]:
    """The reasons in a mask, the worst first; bits without a known meaning are named by their number."""
    found = [reason for bit, reason in REASONS.items() if mask & bit]
    rest = mask & ~sum(REASONS)
    if rest:
        found.append(Reason(f"other (0x{rest:x})", "warn"))
    return tuple(sorted(found, key=lambda reason: -_RANK.index(reason.level)))


def words(mask: int) -> str:
    """`power cap, thermal slowdown by the driver`; `none` when nothing holds the card back."""
    return ", ".join(reason.words for reason in reasons(mask)) or "none"


def level(mask: int) -> str:
    """The worst level in a mask: "", "warn" or "bad"."""
    return max((reason.level for reason in reasons(mask)), key=_RANK.index, default="")
