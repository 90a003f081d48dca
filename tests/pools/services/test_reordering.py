"""An operator moves a request in the queue: it lands where it was put, and nobody else changes places."""

from datetime import timedelta
from itertools import pairwise

import pytest
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given
from hypothesis import strategies as st

from pools.models import Request, RequestEvent
from pools.selectors.requests import queue_of
from pools.services.reordering import boosts_for, put_before
from sensaka.identity.models import User
from sensaka.kernel.errors import Conflict, InvalidInput
from tests.pools.building import NOW, World, request


@given(st.lists(st.integers(-5, 5), max_size=12), st.integers(0, 12))
def test_it_lands_there_and_nobody_else_changes_places(boosts: list[int], place: int) -> None:
    """Whatever order requests of one boost have among themselves."""
    order = sorted(boosts, reverse=True)
    place = min(place, len(order))
    own, raised = boosts_for(order, place)
    after = [raised.get(index, boost) for index, boost in enumerate(order)]
    assert all(boost > own for boost in after[:place])
    assert all(boost < own for boost in after[place:])
    # those of one boost keep one boost on either side, higher ones stay higher: no order among others changes
    for part in (slice(0, place), slice(place, None)):
        pairs = list(zip(order[part], after[part], strict=True))
        for (one, new_one), (two, new_two) in pairwise(pairs):
            assert (one > two) == (new_one > new_two)
    assert all(new >= old for old, new in zip(order, after, strict=True))


@pytest.fixture
def queue(place: World) -> list[Request]:
    return [
        request(place, place.red.project if number % 2 else place.blue.project, name=f"r{number}", position=number + 1,
                waited_since=NOW + timedelta(minutes=number))
        for number in range(6)
    ]  # fmt: skip


def names(place: World) -> str:
    return " ".join(row.name for row in queue_of(place.pool.pk))


def test_up_down_and_to_the_end(place: World, queue: list[Request], operator: User) -> None:
    assert put_before(queue[4], queue[1], why="deadline", actor=operator) == 1
    assert names(place) == "r0 r4 r1 r2 r3 r5"
    put_before(Request.objects.get(pk=queue[0].pk), queue[3], why="can wait", actor=operator)
    assert names(place) == "r4 r1 r2 r0 r3 r5"
    put_before(Request.objects.get(pk=queue[4].pk), None, why="gave up", actor=operator)
    assert names(place) == "r1 r2 r0 r3 r5 r4"
    put_before(Request.objects.get(pk=queue[5].pk), queue[1], why="first", actor=operator)
    assert names(place) == "r5 r1 r2 r0 r3 r4"


def test_who_moved_it_and_why_is_kept_for_all_that_were_touched(
    place: World, queue: list[Request], operator: User
) -> None:
    put_before(queue[3], queue[1], why="the paper's deadline", actor=operator)
    lines = {one.request.name: one for one in RequestEvent.objects.select_related("request", "actor")}
    assert lines["r3"].cause == "operator moved it in the queue (boost +1): the paper's deadline"
    assert lines["r0"].cause == "operator raised it to +2, so that it stays ahead: the paper's deadline"
    assert set(lines) == {"r0", "r3"}
    assert {one.actor for one in lines.values()} == {operator}


def test_the_number_of_statements_does_not_grow(place: World, queue: list[Request], operator: User) -> None:
    def statements(moved: Request, before: Request) -> int:
        with CaptureQueriesContext(
            connection,
        ) as caught:
            put_before(moved, before, why="x", actor=operator)
        return len(caught)

    few = statements(queue[1], queue[0])
    for number in range(6, 30):
        request(place, place.red.project, name=f"r{number}", position=number + 1)
    assert statements(Request.objects.get(name="r29"), Request.objects.get(name="r20")) == few


def test_what_is_refused(place: World, queue: list[Request], operator: User, auditor: User) -> None:
    for actor in (place.red.admin, auditor):
        with pytest.raises(PermissionDenied):
            put_before(queue[1], queue[0], why="me first", actor=actor)
    with pytest.raises(InvalidInput) as refused:
        put_before(queue[1], queue[0], why="  ", actor=operator)
    assert refused.value.context["field"] == "why"
    Request.objects.filter(pk=queue[0].pk).update(state="running")
    with pytest.raises(Conflict):
        put_before(queue[1], queue[0], why="x", actor=operator)
    with pytest.raises(Conflict):
        put_before(queue[0], queue[1], why="x", actor=operator)
    Request.objects.filter(pk=queue[2].pk).update(boost=1000)
    with pytest.raises(Conflict):
        put_before(queue[3], queue[2], why="x", actor=operator)
    assert not RequestEvent.objects.exists()
