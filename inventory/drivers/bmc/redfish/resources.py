"""Reading single properties out of Redfish resources, with everything vendors write there instead.

Missing is None or "", never zero. Accepted on the way in: `@odata.id` in other case and with a host
in front, numbers as text, NaN, all-ones sentinels, blanks around serials, excerpts (`{"Reading": 1}`)
where a plain number used to be.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote, urlsplit

Resource = dict[str, Any]

# All-ones of 32, 63 and 64 bits: what firmware writes where it has no value (TELEMETRY 0 and 6.2).
_SENTINELS = frozenset({4294967295.0, float(2**63 - 1), float(2**63), float(2**64 - 1), float(2**64)})
_NUMBER = re.compile(r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
# A bit error rate of 1.5e-254 means zero; nothing measured is that small.
_SMALLEST = 1e-200
_ABSENT = frozenset({"absent", "disabled"})
_SILENT = frozenset({"unavailableoffline", "standbyoffline", "starting", "deferring", "intest"})


def pick(resource: object, name: str) -> Any:
    """A property by name, in any case; None when it is not there."""
    if not isinstance(resource, Mapping):
        return None
    if name in resource:
        return resource[name]
    wanted = name.lower()
    for key, value in resource.items():
        if isinstance(key, str) and key.lower() == wanted:
            return value
    return None


def dig(resource: object, *names: str) -> Any:
    """A property inside properties; None as soon as one is not there."""
    for name in names:
        resource = pick(resource, name)
    return resource


def oem(resource: object, *names: str) -> Any:
    """A property below `Oem`, whatever the vendor calls itself there (Hp, Hpe, Nvidia, Dell ...)."""
    section = pick(resource, "Oem")
    if not isinstance(section, Mapping):
        return None
    for vendor in section.values():
        found = dig(vendor, *names)
        if found is not None:
            return found
    return None


def number(value: object) -> float | None:
    """A measured number, or None for null, booleans, words, NaN and sentinels."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        stripped = value.strip()
        if not _NUMBER.match(stripped):
            return None
        value = float(stripped)
    if not isinstance(value, int | float):
        return None
    try:
        result = float(value)
    except OverflowError:
        return None
    if not math.isfinite(result) or result in _SENTINELS:
        return None
    return 0.0 if abs(result) < _SMALLEST else result


def excerpt(value: object) -> float | None:
    """The number of a plain property or of a sensor excerpt."""
    return number(pick(value, "Reading")) if isinstance(value, Mapping) else number(value)


def count(value: object) -> int | None:
    """A counter: a whole number from 0 up, else None."""
    result = number(value)
    return None if result is None or result < 0 else int(result)


def words(value: object) -> str:
    """Text without padding; numbers become text (Huawei gives integer ids), everything else is ""."""
    if isinstance(value, str):
        return value.replace("\x00", " ").strip()
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def path_of(reference: object) -> str:
    """The path of a link: from a reference, a resource or text; without host, as the service spells it."""
    if isinstance(reference, Mapping):
        reference = pick(reference, "@odata.id") or pick(reference, "href")
    if not isinstance(reference, str) or not reference.strip():
        return ""
    parts = urlsplit(reference.strip())
    return unquote(parts.path) + (f"?{parts.query}" if parts.query else "")


def same(path: str) -> str:
    """A path for comparing: no trailing slash, no case (vendors mix both)."""
    return path.rstrip("/").lower()


def name_in(path: str) -> str:
    """The last part of a path."""
    return path.rstrip("/").rsplit("/", 1)[-1]


def paths_in(references: object) -> list[str]:
    """The paths of a list of references, or of a single one."""
    if isinstance(references, Mapping):
        references = [references]
    if not isinstance(references, Sequence) or isinstance(references, str):
        return []
    return [path for path in map(path_of, references) if path]


def entries_in(value: object) -> Iterator[Resource]:
    """The objects of a list property; anything else in it is passed over."""
    if isinstance(value, list):
        yield from (entry for entry in value if isinstance(entry, dict))


def state_of(resource: object) -> str:
    """`Status.State` in lower case."""
    return words(dig(resource, "Status", "State")).lower()


def is_absent(resource: object) -> bool:
    """Whether the thing is not there: an Absent sensor reads 0 and must not be believed."""
    return state_of(resource) in _ABSENT


def is_silent(resource: object) -> bool:
    """Whether the thing is there but says nothing now (its host is off, it is starting)."""
    return state_of(resource) in _SILENT


def moment(value: object) -> datetime | None:
    """An aware UTC time, or None for what is missing, unreadable or from 1970 (a clock never set)."""
    text = words(value)
    if not text:
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    aware = parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    return aware if aware.year > 1970 else None
