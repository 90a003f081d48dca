"""How requests move: refused when somebody was faster, told once, signalled after commit."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, transaction

from pools import signals
from pools.models import Allocation, Extension, Launch, Request, RequestEvent, Spec
from pools.services import extensions
from pools.services import requests as services
from pools.services.asking import Work
from pools.services.catalogue import store
from pools.services.lifecycle import act, move
from sensaka.identity.models import Role
from sensaka.kernel.errors import Conflict, IllegalTransition, InvalidInput
from tests.pools.building import NOW, World, allocation, person, request, world

Heard = list[tuple[str, Any]]


@pytest.fixture
def heard() -> Any:
    """What the apps' signals said."""
    found: Heard = []

    def listen(name: str) -> Callable[..., None]:
        def receive(sender: Any, **said: Any) -> None:
            said.pop("signal")
            found.append((name, said))

        return receive

    receivers = {name: listen(name) for name in ("requests_changed", "catalogue_changed")}
    for name, receiver in receivers.items():
        getattr(signals, name).connect(receiver)
    yield found
    for name, receiver in receivers.items():
        getattr(signals, name).disconnect(receiver)


@pytest.mark.django_db
class TestMoving:
    def test_an_event_changes_the_state_and_leaves_a_line(self, place: World) -> None:
        row = request(place, place.red.project)
        move(row, "admit", cause="Two cards of n1 are free.", now=NOW, mark="m-1", attempt=1)
        stored = Request.objects.get()
        assert (stored.state, stored.state_since, stored.mark, row.state) == ("starting", NOW, "m-1", "starting")
        event = RequestEvent.objects.get()
        assert (event.event, event.source, event.target, event.at) == ("admit", "queued", "starting", NOW)

    def test_an_end_takes_the_waiting_away(self, place: World) -> None:
        row = request(place, place.red.project, reasons=[{"code": "HELD"}], position=3, expected_start=NOW)
        move(row, "cancel", cause="c", now=NOW)
        stored = Request.objects.get()
        assert (stored.ended_at, stored.reasons, stored.position, stored.expected_start) == (NOW, [], None, None)

    def test_what_can_not_happen_is_refused(self, place: World) -> None:
        row = request(place, place.red.project)
        with pytest.raises(IllegalTransition, match="possible: admit, cancel, reject"):
            move(row, "complete", cause="c")
        assert not RequestEvent.objects.exists()

    def test_who_is_late_changes_nothing(self, place: World) -> None:
        row = request(place, place.red.project)
        late = Request.objects.get()
        move(row, "admit", cause="first")
        with pytest.raises(Conflict, match="changed meanwhile"):
            move(late, "cancel", cause="second")
        assert (Request.objects.get().state, RequestEvent.objects.count()) == ("starting", 1)

    def test_an_act_is_told_once_and_not_of_what_moved_on(self, place: World) -> None:
        row = request(place, place.red.project)
        assert act(row, "hold", cause="c", actor=None, unless={"held": True}, held=True)
        assert not act(row, "hold", cause="c", actor=None, unless={"held": True}, held=True)
        assert RequestEvent.objects.count() == 1
        Request.objects.update(state="running")
        with pytest.raises(Conflict, match="changed meanwhile"):
            act(row, "hold", cause="c", actor=None, unless={"held": False}, held=False)

    def test_the_signal_comes_after_the_commit_and_not_after_a_rollback(
        self, place: World, heard: Heard, django_capture_on_commit_callbacks: Any
    ) -> None:
        row = request(place, place.red.project)
        with django_capture_on_commit_callbacks(execute=True) as waiting:
            move(row, "admit", cause="c")
            assert heard == []
        assert (len(waiting), heard) == (1, [("requests_changed", {"requests": [row.pk]})])

        def broken() -> None:
            with transaction.atomic():
                move(row, "launch", cause="c")
                raise RuntimeError

        with django_capture_on_commit_callbacks(execute=True) as nothing, pytest.raises(RuntimeError):
            broken()
        assert nothing == []
        assert len(heard) == 1


@pytest.mark.django_db
class TestStoring:
    def test_saving_what_is_there_tells_nothing(
        self, place: World, heard: Heard, django_capture_on_commit_callbacks: Any
    ) -> None:
        with django_capture_on_commit_callbacks(execute=True):
            store(place.spec, values={"name": "1 x H100", "pools": [place.pool]}, actor=None)
            assert heard == []
            store(place.spec, values={"pools": []}, actor=None)
        assert heard == [("catalogue_changed", {"kind": "spec"})]

    def test_a_refusal_leaves_the_row_as_it_was(self, place: World) -> None:
        with pytest.raises(InvalidInput, match="A MIG spec names its profile"):
            store(Spec.objects.get(), values={"mode": "mig", "pools": []}, actor=None)
        assert (Spec.objects.get().mode, Spec.objects.get().pools.count()) == ("whole", 1)


def at_once(number: int, do: Callable[[int], Any]) -> list[Any]:
    """What each of several threads got, an error included; each with a connection of its own."""

    def run(index: int) -> Any:
        try:
            return do(index)
        except Conflict as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(number) as threads:
        return list(threads.map(run, range(number)))


@pytest.mark.django_db(transaction=True, available_apps=settings.INSTALLED_APPS)
class TestRaces:
    def test_of_many_admissions_of_one_request_one_happens(self) -> None:
        place = world()
        row = request(place, place.red.project)

        def admit(index: int) -> str:
            mine = Request.objects.get(pk=row.pk)
            if mine.state != "queued":
                raise Conflict("late")
            move(mine, "admit", cause=f"worker {index}", attempt=index)
            return "admitted"

        results = at_once(8, admit)
        assert results.count("admitted") == 1
        assert all(isinstance(one, Conflict) for one in results if one != "admitted")
        assert RequestEvent.objects.count() == 1

    def test_one_key_sent_by_many_at_once_is_one_request(self) -> None:
        place = world()
        work = Work(launch=Launch.SCRIPT, script="#!/bin/sh\ntrue\n")

        def submit(_index: int) -> Any:
            return services.submit(
                project=place.red.project, spec=place.spec, work=work, time_limit=3600, actor=place.red.member,
                idempotency_key="same",
            ).pk  # fmt: skip

        assert len(set(at_once(6, submit))) == 1
        assert (Request.objects.count(), RequestEvent.objects.count()) == (1, 2)

    def test_an_extension_that_two_grant_is_granted_once(self) -> None:
        place = world()
        row = request(
            place, place.red.project, state="running", started_at=NOW, ends_at=NOW + timedelta(hours=1),
            submitter=place.red.member,
        )  # fmt: skip
        allocation(place.cards[0], place.red, request=row, ends_at=row.ends_at)
        wish = extensions.ask_extension(row, seconds=600, justification="more", actor=place.red.member)
        deciders = [person(f"op{number}", Role.OPERATOR) for number in range(4)]

        def grant(index: int) -> Any:
            mine = Extension.objects.select_related("request__pool", "request__project").get(pk=wish.pk)
            return extensions.decide(mine, granted=True, why="", actor=deciders[index])

        results = at_once(4, grant)
        assert len([one for one in results if isinstance(one, Extension)]) == 1
        assert Request.objects.get().time_limit == 4200
        assert Allocation.objects.get().ends_at == NOW + timedelta(seconds=4200)
