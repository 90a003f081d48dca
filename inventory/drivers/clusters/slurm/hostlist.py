"""Slurm's short form of node lists: `h100-[001-003,7],login` and back. Pure.

Several bracket groups in one name are expanded from left to right; compressing folds the last number
of names that follow each other, so the order of a list survives the way there and back.
"""

import re
from collections.abc import Iterable, Iterator

MOST_NAMES = 262_144  # far above any cluster; a wrong answer must not fill the memory
_NUMBERED = re.compile(r"^(.*?)(\d{1,18})(\D*)$", re.DOTALL)
_RANGE = re.compile(r"^(\d{1,18})(?:-(\d{1,18}))?$", re.ASCII)


class HostlistError(ValueError):
    """The text is no list of nodes."""


def expand(text: str) -> tuple[str, ...]:
    """All names in order; HostlistError for broken brackets, ranges that fall, or too many names."""
    names: list[str] = []
    for part in split_outside(text, "[", "]"):
        for name in _expand_one(part):
            names.append(name)
            if len(names) > MOST_NAMES:
                raise HostlistError(f"more than {MOST_NAMES} names in {text[:80]!r}")
    return tuple(names)


def split_outside(text: str, opening: str, closing: str) -> Iterator[str]:
    """The parts between commas that are not inside brackets, blanks around and empty ones left out."""
    depth = start = 0
    for place, letter in enumerate(text):
        if letter == opening:
            depth += 1
        elif letter == closing:
            depth -= 1
        elif letter == "," and depth == 0:
            if part := text[start:place].strip():
                yield part
            start = place + 1
    if part := text[start:].strip():
        yield part


def ranges(text: str) -> Iterator[str]:
    """The numbers of `001-003,7` as text, padded as the range's first number is."""
    for piece in text.split(","):
        match = _RANGE.match(piece.strip())
        if match is None:
            raise HostlistError(f"{piece[:40]!r} is no number and no range")
        low, high = match[1], match[2] or match[1]
        if int(high) < int(low) or int(high) - int(low) >= MOST_NAMES:
            raise HostlistError(f"range {piece[:40]!r} falls or is too long")
        for number in range(int(low), int(high) + 1):
            yield str(number).zfill(len(low))


def _expand_one(part: str) -> Iterator[str]:
    head, bracket, rest = part.partition("[")
    if not bracket:
        if "]" in part:
            raise HostlistError(f"a bracket is closed but not opened in {part[:80]!r}")
        yield part
        return
    inner, closed, tail = rest.partition("]")
    if not closed or "[" in inner or "]" in head:
        raise HostlistError(f"brackets don't match in {part[:80]!r}")
    tails = tuple(_expand_one(tail)) if tail else ("",)
    for number in ranges(inner):
        for end in tails:
            yield f"{head}{number}{end}"


def compress(names: Iterable[str]) -> str:
    """The short form; `expand` of it gives the same names in the same order."""
    groups: list[tuple[str, str, list[str]]] = []
    for name in names:
        match = _NUMBERED.match(name)
        head, number, tail = (match[1], match[2], match[3]) if match else (name, "", "")
        if number and groups and groups[-1][:2] == (head, tail) and groups[-1][2][0]:
            groups[-1][2].append(number)
        else:
            groups.append((head, tail, [number]))
    return ",".join(_text_of(*group) for group in groups)


def _text_of(head: str, tail: str, numbers: list[str]) -> str:
    if len(numbers) == 1:
        return f"{head}{numbers[0]}{tail}"
    runs: list[tuple[str, str]] = []
    for number in numbers:
        if runs and _follows(runs[-1][0], runs[-1][1], number):
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    inner = ",".join(low if low == high else f"{low}-{high}" for low, high in runs)
    return f"{head}[{inner}]{tail}"


def _follows(first: str, last: str, number: str) -> bool:
    """Whether a range from `first` that reaches `last` would go on with `number`, written this way."""
    following = int(last) + 1
    return int(number) == following and number == str(following).zfill(len(first))
