"""The stored reasons of a request as sentences, in somebody's time zone."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any

from pools.rules.reasons import Code, Reason


@dataclass(frozen=True, slots=True)
class Told:
    """Why a request waits, and what would unblock it."""

    code: str
    detail: str
    unblock: str


def told(stored: Iterable[Mapping[str, Any]], *, zone: tzinfo = UTC, now: datetime | None = None) -> list[Told]:
    """The sentences of [{code, args}]. A code that this version doesn't know is told as it stands."""
    moment = None if now is None else int(now.timestamp())
    found = []
    for one in stored:
        code = str(one.get("code", ""))
        if code not in Code.__members__:
            found.append(Told(code, code.replace("_", " ").lower(), ""))
            continue
        detail, unblock = Reason(Code(code), one.get("args") or {}).told(zone=zone, now=moment)
        found.append(Told(code, detail, unblock))
    return found
