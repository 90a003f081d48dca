"""Chance that repeats: every draw is a function of the seed and of what it is drawn for."""

import hashlib
import uuid
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def _digest(seed: int, keys: Sequence[object]) -> bytes:
    return hashlib.blake2b(repr((seed, *keys)).encode(), digest_size=16).digest()


def fraction(seed: int, *keys: object) -> float:
    """A number in [0, 1)."""
    return int.from_bytes(_digest(seed, keys)[:7], "big") / 2**56


def between(low: float, high: float, seed: int, *keys: object) -> float:
    """A number in [low, high)."""
    return low + (high - low) * fraction(seed, *keys)


def pick(choices: Sequence[T], seed: int, *keys: object) -> T:
    """One of the choices."""
    return choices[int(fraction(seed, *keys) * len(choices))]


def identifier(seed: int, *keys: object) -> str:
    """A UUID in lower-case text."""
    return str(uuid.UUID(bytes=_digest(seed, keys), version=4))


def hexadecimal(length: int, seed: int, *keys: object) -> str:
    """Upper-case hexadecimal digits, at most 32."""
    return _digest(seed, keys).hex()[:length].upper()
