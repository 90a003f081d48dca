"""Kubernetes' quantities: `8`, `1500m`, `500Gi`, `2e3`. Pure."""

import re
from decimal import Decimal

_QUANTITY = re.compile(
    r"^([+-]?[0-9]{1,20}(?:\.[0-9]{1,20})?)(?:[eE]([+-]?[0-9]{1,2})|([numkMGTPE]|[KMGTPE]i))?$", re.ASCII
)
_FACTORS = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "k": Decimal(10**3), "M": Decimal(10**6),
    "G": Decimal(10**9), "T": Decimal(10**12), "P": Decimal(10**15), "E": Decimal(10**18), "Ki": Decimal(2**10),
    "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40), "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip


def amount(text: str | int | None) -> Decimal | None:
    """The number; None for what is no quantity."""
    if text is None:
        return None
    match = _QUANTITY.match(str(text))
    if match is None:
        return None
    number = Decimal(match[1])
    if match[2]:
        return number.scaleb(int(match[2]))
    return number * _FACTORS[match[3]] if match[3] else number


def whole(text: str | int | None) -> int | None:
    """The whole number in it, rounded down; None for what is no quantity."""
    number = amount(text)
    return None if number is None else int(number)
