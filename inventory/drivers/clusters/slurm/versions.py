"""Which version of slurmrestd's interface to speak: what it offers against what was tested. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

TESTED = ("v0.0.36", "v0.0.37", "v0.0.38", "v0.0.40", "v0.0.41", "v0.0.42")
NEW_FORM = 39  # numbers that may be unset, states as lists; nodes can be changed (POST)
_OFFERED = re.compile(rb"slurm\\?/v(\d{1,4})\.(\d{1,4})\.(\d{1,4})\\?/(?:nodes|jobs)\b")


@dataclass(frozen=True, slots=True)
class Interface:
    """One version, as in the paths. `note` says what is to be known about it."""

    name: str
    tested: bool
    note: str = ""

    @property
    def number(self) -> int:
        """Its last number; a major or minor other than 0 counts as newer than all."""
        major, minor, number = (int(part) for part in self.name[1:].split("."))
        return number if (major, minor) == (0, 0) else 10_000

    @property
    def new_form(self) -> bool:
        """Whether it speaks the newer form."""
        return self.number >= NEW_FORM


def offered_in(document: bytes) -> tuple[str, ...]:
    """Versions that have nodes and jobs, from the server's OpenAPI document, oldest first."""
    found = {tuple(int(part) for part in match) for match in _OFFERED.findall(document)}
    return tuple("v" + ".".join(str(part) for part in version) for version in sorted(found))


def choose(offered: Iterable[str]) -> Interface | None:
    """The newest tested version, else the one nearest above what was tested, else None."""
    names = tuple(offered)
    tested = [name for name in TESTED if name in names]
    if tested:
        return Interface(tested[-1], tested=True)
    others = [Interface(name, tested=False) for name in names]
    newer = [one for one in others if one.number >= NEW_FORM]
    if not newer:
        return None
    nearest = min(newer, key=lambda one: one.number)
    note = f"slurmrestd offers {', '.join(names)}; tested are {', '.join(TESTED)}: {nearest.name} is used, untested"
    return Interface(nearest.name, tested=False, note=note)
