"""Two warnings, then what the pool says; extensions, exemptions; passes that run again or at once (P10)."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import Barrier, Thread
from typing import Any

import pytest
from django.conf import settings
from django.db import connections
from django.utils import timezone

from inventory.models import Card, JournalEntry
from pools.models import Allocation, IdleCase, IdleExemption, Reclaim, Request, RequestEvent
from pools.services import sparing
from pools.services.idling import Pass, look
from pools.signals import idle_warned
from sensaka.identity.models import User
from sensaka.kernel.errors import InvalidInput
from tests.inventory.samples.test_rollups import set_watermark
from tests.pools.building import world
from tests.pools.idle.building import Idling, opened


@pytest.fixture
def card(idling: Idling) -> Card:
    """A card that stays idle for six hours to come."""
    card = idling.place.cards[0]
    idling.feed(card, 0, since=240, until=-360)
    return card


@contextmanager
def warnings() -> Iterator[list[int]]:
    heard: list[int] = []

    def hear(warning: int, cases: list[Any], **_: Any) -> None:
        heard.extend([warning] * len(cases))

    idle_warned.connect(hear)
    yield heard
    idle_warned.disconnect(hear)


def stored() -> list[Any]:
    """Everything that a pass may write."""
    models = (IdleCase, Reclaim, Request, RequestEvent, JournalEntry, Allocation, IdleExemption)
    return [list(model.objects.order_by("pk").values()) for model in models]


def test_two_warnings_then_the_pool_takes_it_back(
    idling: Idling, card: Card, django_capture_on_commit_callbacks: Any
) -> None:
    wish = idling.request([card])
    idling.policy(idle_policy="reclaim")
    with warnings() as heard, django_capture_on_commit_callbacks(execute=True):
        assert opened(idling.look()) == 1
        assert idling.look(29).changed == 0
        assert idling.look(30) == Pass(warned_again=1)
        assert idling.look(59).changed == 0
    assert heard == [1, 2]
    case = idling.case()
    assert (case.first_warned_at, case.second_warned_at) == (idling.now, idling.ago(-30))
    wish.refresh_from_db()
    assert wish.end_asked == ""
    assert idling.look(60) == Pass(reclaimed=1)
    wish.refresh_from_db()
    assert (wish.end_asked, wish.end_asked_at, wish.state) == ("cancel", idling.ago(-60), "running")
    reclaim = Reclaim.objects.get()
    assert (reclaim.state, reclaim.source, reclaim.case) == ("releasing", "policy", case)
    assert idling.look(61).changed == 0
    # its cluster has ended it: the ledger closes what it held
    Allocation.objects.update(span=(idling.ago(600), idling.ago(-65)))
    assert idling.look(70) == Pass(ended=1)
    case.refresh_from_db()
    reclaim.refresh_from_db()
    assert (case.state, reclaim.state) == ("reclaimed", "done")


def test_everything_is_in_the_requests_history_and_the_journal(idling: Idling, card: Card) -> None:
    wish = idling.request([card])
    idling.policy(idle_policy="reclaim")
    for later in (0, 30, 60):
        idling.look(later)
    events = list(RequestEvent.objects.filter(request=wish).order_by("at", "id"))
    assert [one.event for one in events] == ["idle_warned", "idle_warned", "cancel_asked"]
    assert events[0].cause.startswith("First warning: 1 card idle since ")
    assert "In 30 min they are taken back" in events[1].cause
    assert {one.source for one in events} == {one.target for one in events} == {"running"}
    lines = list(JournalEntry.objects.filter(kind="cards_idle").order_by("at", "id"))
    assert [line.card for line in lines] == [card] * 3
    assert lines[0].text.startswith("1 card of train of red-member (Red): First warning")
    assert lines[2].text.startswith(
        "1 card of train of red-member (Red): Reclaimed by the pool's rule: warned twice and "
    )


def test_a_pool_that_suggests_leaves_it_to_an_operator(idling: Idling, card: Card) -> None:
    wish = idling.request([card])
    for later in (0, 30):
        idling.look(later)
    assert idling.look(60) == Pass(suggested=1)
    for later in (61, 90, 240):
        assert idling.look(later).changed == 0
    wish.refresh_from_db()
    assert wish.end_asked == ""
    assert (Reclaim.objects.get().state, idling.case().state) == ("asked", "open")


def test_work_that_sensaka_did_not_start_is_never_ended_by_the_clock(idling: Idling, card: Card) -> None:
    idling.job([card])
    idling.policy(idle_policy="reclaim")
    for later in (0, 30):
        idling.look(later)
    assert idling.look(60) == Pass(suggested=1)
    assert "An operator is asked" in JournalEntry.objects.order_by("-id")[0].text


def test_use_closes_the_case_and_it_begins_anew(idling: Idling, card: Card) -> None:
    idling.request([card])
    for later in (0, 30, 60):
        idling.look(later)
    idling.feed(card, 100, since=-61.5, until=-62)
    assert idling.look(63) == Pass(closed=1)
    case = idling.case()
    assert (case.state, case.closed_at) == ("busy", idling.ago(-63))
    assert Reclaim.objects.get().state == "refused"
    assert idling.look(181).changed == 0
    assert opened(idling.look(183)) == 1
    assert IdleCase.objects.get(state="open").second_warned_at is None


def test_losing_telemetry_after_a_warning_stops_the_clock(idling: Idling) -> None:
    """The missing stretch neither lets the next step happen nor begins the count anew."""
    card = idling.place.cards[0]
    idling.request([card])
    idling.policy(idle_policy="reclaim")
    idling.feed(card, 0, since=240, until=-5)
    assert opened(idling.look()) == 1
    for later in (40, 60, 90, 150, 240):
        assert idling.look(later).changed == 0
    assert (idling.case().state, idling.case().second_warned_at) == ("open", None)
    idling.feed(card, 0, since=-240, until=-360)
    assert idling.look(347).changed == 0
    assert idling.look(348) == Pass(warned_again=1), "108 of 120 minutes are known again"


def test_running_a_pass_again_changes_nothing(idling: Idling, card: Card) -> None:
    idling.request([card])
    job = idling.place.cards[1]
    idling.job([job])
    idling.feed(job, 1, since=240, until=-360)
    for later in (0, 30, 60):
        assert idling.look(later).changed == 2
        before = stored()
        assert idling.look(later).changed == 0
        assert stored() == before


@pytest.mark.parametrize("kind", ["project", "request", "spec"])
def test_what_is_spared(idling: Idling, card: Card, operator: User, kind: str) -> None:
    wish = idling.request([card])
    idling.look()
    target = {"project": wish.project, "request": wish, "spec": wish.spec}[kind]
    until = timezone.now() + timedelta(hours=1)
    row = sparing.spare(target=target, reason="demo tomorrow", until=until, actor=operator)
    assert idling.look(1) == Pass(closed=1)
    assert idling.case().state == "spared"
    assert idling.look(2).changed == 0
    sparing.lift_exemption(row, actor=operator)
    assert opened(idling.look(3)) == 1


def test_an_exemption_ends_by_itself(idling: Idling, card: Card) -> None:
    wish = idling.request([card])
    IdleExemption.objects.create(request=wish, reason="until the review", until=idling.ago(-30))
    assert idling.look(29).changed == 0
    assert opened(idling.look(30)) == 1


def test_an_exemption_of_others_spares_nothing(idling: Idling, card: Card) -> None:
    idling.request([card])
    IdleExemption.objects.create(project=idling.place.blue.project, reason="theirs", until=idling.ago(-900))
    assert opened(idling.look()) == 1


def test_an_exemption_names_one_thing_says_why_and_ends(idling: Idling, operator: User) -> None:
    later, project = timezone.now() + timedelta(hours=1), idling.place.red.project
    for values, field in (
        ({"target": project, "reason": " ", "until": later}, "reason"),
        ({"target": project, "reason": "x", "until": timezone.now()}, "until"),
    ):
        with pytest.raises(InvalidInput) as refused:
            sparing.spare(**values, actor=operator)
        assert refused.value.context["field"] == field
    with pytest.raises(InvalidInput):
        sparing.spare(target=idling.place.pool, reason="x", until=later, actor=operator)


@pytest.mark.django_db(transaction=True, available_apps=settings.INSTALLED_APPS)
def test_two_workers_at_once_warn_once() -> None:
    idling = Idling(world())
    set_watermark(idling.ago(720))
    card = idling.place.cards[0]
    idling.request([card])
    idling.feed(card, 0, since=240, until=-60)
    done: list[Pass] = []
    for later, step in ((0, "opened"), (30, "warned_again"), (60, "suggested")):
        ready = Barrier(4)

        def work(later: float = later, ready: Barrier = ready) -> None:
            ready.wait()
            done.append(look(now=idling.now + timedelta(minutes=later)))
            connections.close_all()

        done.clear()
        workers = [Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(60)
        assert len(done) == 4
        assert sum(getattr(one, step) for one in done) == 1
        assert sum(one.changed for one in done) == 1
    assert RequestEvent.objects.filter(event="idle_warned").count() == 2
    assert IdleCase.objects.count() == Reclaim.objects.count() == 1
