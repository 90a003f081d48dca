"""The stored reasons of a request as sentences, in somebody's time zone, naming what they may see."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any
from uuid import UUID

from django.db.models import Q

from pools.models import Request
from pools.rules.reasons import Code, Reason
from sensaka.identity.models import User

Stored = Mapping[str, Any]
# arguments that name other people's work, and what stands there for who may not see it
_NAMES = {
    "first": "one of another team", "head": "a request of another team", "release_by": "other work",
    "victims": "work of a lower class",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Told:
    """Why a request waits, and what would unblock it."""

    code: str
    detail: str
    unblock: str


def told(
    stored: Iterable[Stored], *, zone: tzinfo = UTC, now: datetime | None = None, names: Mapping[str, str] | None = None
) -> list[Told]:
    """The sentences of [{code, args}]. A code that this version doesn't know is told as it stands.

    `names` are the requests that may be named, by name or id; others are told of without a name. None: all may.
    """
    moment = None if now is None else int(now.timestamp())
    found = []
    for one in stored:
        code = str(one.get("code", ""))
        if code not in Code.__members__:
            found.append(Told(code, code.replace("_", " ").lower(), ""))
            continue
        args = _named(one.get("args") or {}, names)
        detail, unblock = Reason(Code(code), args).told(zone=zone, now=moment)
        found.append(Told(code, detail, unblock))
    return found


def _named(args: Stored, names: Mapping[str, str] | None) -> Stored:
    if names is None:
        return args
    return {**args, **{key: names.get(str(args[key]), other) for key, other in _NAMES.items() if args.get(key)}}


def told_to(user: User, requests: Iterable[Request], *, zone: tzinfo, now: datetime) -> dict[UUID, list[Told]]:
    """The reasons of several requests for one reader. One query: which of the requests named he may see."""
    rows = list(requests)
    given = [one.get("args") or {} for row in rows for one in row.reasons]
    named = {str(args[key]) for args in given for key in _NAMES if args.get(key)}
    names = _names_seen(user, named)
    if user.sees_all_tenants:  # nothing is hidden; ids alone are put in words
        names = {text: text for text in named} | names
    return {row.pk: told(row.reasons, zone=zone, now=now, names=names) for row in rows}


def _names_seen(user: User, named: Iterable[str]) -> dict[str, str]:
    texts = set(named)
    if not texts:
        return {}
    rows = Request.objects.visible_to(user).filter(Q(name__in=texts) | Q(pk__in=ids_among(texts)), ended_at=None)
    found: dict[str, str] = {}
    for row in rows.select_related("spec").only("name", "count", "spec__name"):
        found[str(row.pk)] = str(row)
        if row.name:
            found[row.name] = row.name
    return found


def ids_among(texts: Iterable[str]) -> list[UUID]:
    """Those of some texts that are identifiers."""
    found = []
    for text in texts:
        try:
            found.append(UUID(text))
        except ValueError:
            continue
    return found
