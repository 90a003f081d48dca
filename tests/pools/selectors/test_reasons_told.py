"""Reasons name a reader's own work and nobody else's (X3, P5)."""

from datetime import UTC
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from pools.models import Request
from pools.selectors.reasons import told_to
from sensaka.identity.models import User
from tests.pools.building import NOW, World, request

LATER = int(NOW.timestamp()) + 3600
NAMING: list[dict[str, Any]] = [
    {"code": "BEHIND_PRIORITY", "args": {"ahead": 2, "first": "NAME"}},
    {"code": "BACKFILL_BLOCKED", "args": {"head": "NAME", "others": 0, "reserved_at": LATER, "minutes": 60,
                                          "at_most": 30}},
    {"code": "PREEMPTING", "args": {"cards": 2, "victims": "NAME", "free_at": LATER}},
    {"code": "NO_FREE_CARDS", "args": {"needed": 4, "what": "H100", "where": "", "free": 0, "out": 0, "largest": 0,
                                       "released": 4, "release_at": LATER, "release_by": "NAME"}},
]  # fmt: skip


def named(text: str) -> list[dict[str, Any]]:
    return [
        {**one, "args": {name: text if value == "NAME" else value for name, value in one["args"].items()}}
        for one in NAMING
    ]


@pytest.fixture
def theirs(place: World) -> Request:
    return request(place, place.blue.project, name="secret-merger")


@pytest.mark.parametrize("by", ["name", "id"])
def test_the_work_of_others_is_told_of_without_its_name(place: World, theirs: Request, operator: User, by: str) -> None:
    text = theirs.name if by == "name" else str(theirs.pk)
    mine = request(place, place.red.project, reasons=named(text))

    def sentences(user: User) -> str:
        rows = told_to(user, [mine], zone=UTC, now=NOW)[mine.pk]
        assert len(rows) == len(NAMING)
        return " ".join(f"{one.detail} {one.unblock}" for one in rows)

    assert "secret-merger" in sentences(operator)
    hidden = sentences(place.red.admin)
    assert "secret-merger" not in hidden
    assert str(theirs.pk) not in hidden
    assert "one of another team" in hidden
    assert "secret-merger" in sentences(place.blue.member)


def test_one_query_for_any_number(place: World, theirs: Request) -> None:
    rows = [request(place, place.red.project, reasons=named(theirs.name)) for _ in range(5)]
    with CaptureQueriesContext(connection) as caught:
        told_to(place.red.admin, rows, zone=UTC, now=NOW)
    assert len(caught) == 1
