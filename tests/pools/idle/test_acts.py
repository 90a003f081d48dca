"""What people do about idle work: release, ask for time, decide, take back, leave (P10)."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from inventory.models import JournalEntry
from pools.models import Allocation, IdleCase, Membership, Reclaim, Request, RequestEvent
from pools.services import reclaiming
from pools.services.idling import Pass, look
from sensaka.identity.models import User
from sensaka.kernel.errors import Conflict, InvalidInput
from tests.inventory.clusters.building import T0, opener
from tests.pools.building import person
from tests.pools.idle.building import Idling
from tests.pools.ledger.conftest import Ledger, ledger

__all__ = ["ledger", "opener"]
HOUR = 3600


@pytest.fixture
def wish(idling: Idling) -> Request:
    """A request found idle; its card stays idle for hours to come."""
    card = idling.place.cards[0]
    made = idling.request([card])
    idling.feed(card, 0, since=240, until=-420)
    idling.policy(idle_policy="reclaim")
    assert idling.look().opened == 1
    return made


def ask(idling: Idling, actor: User, **values: Any) -> IdleCase:
    base = {"seconds": 2 * HOUR, "justification": "waiting for data"}
    return reclaiming.ask_time(idling.case(), **(base | values), actor=actor)


def test_a_wish_for_time_stops_the_clock_until_it_is_decided(idling: Idling, wish: Request, operator: User) -> None:
    ask(idling, idling.place.red.member)
    for later in (30, 60, 300):
        assert idling.look(later).changed == 0
    case = reclaiming.decide_time(idling.case(), granted=False, why="others wait", actor=operator)
    assert (case.state, case.decision, case.extended_until) == ("open", "others wait", None)
    assert idling.look(301) == Pass(warned_again=1)
    with pytest.raises(Conflict, match="was refused"):
        ask(idling, idling.place.red.member)
    assert idling.look(331) == Pass(reclaimed=1)
    events = list(RequestEvent.objects.filter(request=wish).order_by("id").values_list("event", flat=True))
    assert events == [
        "idle_warned", "idle_extension_asked", "idle_extension_refused", "idle_warned", "cancel_asked",
    ]  # fmt: skip


def test_granted_time_is_kept_to_the_minute(idling: Idling, wish: Request, operator: User) -> None:
    ask(idling, idling.place.red.member)
    case = reclaiming.decide_time(idling.case(), granted=True, why="", actor=operator)
    assert case.state == "extended"
    # the decision was made by the wall clock; the passes of this test are hours behind it
    IdleCase.objects.update(extended_until=idling.ago(-120))
    for later in (30, 60, 119):
        assert idling.look(later).changed == 0
    assert idling.look(120) == Pass(warned_again=1)
    assert idling.case().state == "open"
    assert idling.look(150) == Pass(reclaimed=1)
    assert JournalEntry.objects.filter(kind="cards_idle", actor=operator).count() == 1


def test_an_operators_own_wish_needs_no_decision(idling: Idling, wish: Request, operator: User) -> None:
    case = ask(idling, operator)
    assert (case.state, case.decided_by) == ("extended", operator)
    assert abs(case.extended_until - timezone.now() - timedelta(hours=2)) < timedelta(minutes=1)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("values", "field"),
    [({"seconds": 599}, "seconds"), ({"seconds": 10**9}, "seconds"), ({"justification": " \n"}, "justification")],
)
def test_a_wish_that_can_not_be(idling: Idling, wish: Request, values: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        ask(idling, idling.place.red.member, **values)
    assert refused.value.context["field"] == field
    assert idling.case().extension_asked_at is None


def test_one_wish_at_a_time_and_only_what_waits_is_decided(idling: Idling, wish: Request, operator: User) -> None:
    with pytest.raises(Conflict):
        reclaiming.decide_time(idling.case(), granted=True, why="", actor=operator)
    ask(idling, idling.place.red.member)
    with pytest.raises(Conflict, match="asked already"):
        ask(idling, idling.place.red.admin)
    with pytest.raises(InvalidInput):
        reclaiming.decide_time(idling.case(), granted=False, why=" ", actor=operator)
    with pytest.raises(PermissionDenied):
        reclaiming.decide_time(idling.case(), granted=True, why="mine", actor=idling.place.red.admin)


def test_who_may_do_what(idling: Idling, wish: Request, auditor: User) -> None:
    place, case = idling.place, idling.case()
    colleague = person("colleague")
    Membership.objects.create(tenant=place.red.tenant, project=place.red.project, user=colleague)
    for actor in (colleague, place.blue.admin, person("stranger"), auditor):
        for act in (
            lambda actor=actor: ask(idling, actor),
            lambda actor=actor: reclaiming.release(case, actor=actor),
            lambda actor=actor: reclaiming.reclaim(case, why="x", actor=actor),
            lambda actor=actor: reclaiming.leave(case, seconds=HOUR, why="x", actor=actor),
        ):
            with pytest.raises(PermissionDenied):
                act()
    for actor in (place.red.member, place.red.admin):
        with pytest.raises(PermissionDenied):
            reclaiming.reclaim(case, why="x", actor=actor)
    wish.refresh_from_db()
    assert wish.end_asked == ""
    assert not Reclaim.objects.exists()


def test_the_owner_of_a_job_is_the_member_of_its_name(idling: Idling) -> None:
    card, red = idling.place.cards[0], idling.place.red
    idling.job([card], user="red-member")
    idling.feed(card, 0)
    idling.look()
    colleague = person("colleague")
    Membership.objects.create(tenant=red.tenant, project=red.project, user=colleague)
    with pytest.raises(PermissionDenied):
        ask(idling, colleague)
    namesake = person("somebody")
    User.objects.filter(pk=red.member.pk).update(username="other")
    User.objects.filter(pk=namesake.pk).update(username="red-member")
    namesake.refresh_from_db()
    with pytest.raises(PermissionDenied):
        ask(idling, namesake)  # of that name, and in no team
    assert ask(idling, red.admin).extension_waits


def test_an_owner_gives_it_back(idling: Idling, wish: Request) -> None:
    case = reclaiming.release(idling.case(), why="forgot it", actor=idling.place.red.member)
    wish.refresh_from_db()
    assert (wish.end_asked, wish.state) == ("complete", "running")
    assert idling.look(30).changed == 0
    reclaiming.release(case, actor=idling.place.red.member)
    Allocation.objects.update(span=(idling.ago(600), idling.ago(-31)))
    assert idling.look(40) == Pass(ended=1)
    assert (idling.case().state, Reclaim.objects.get().state) == ("released", "done")
    with pytest.raises(Conflict, match="no longer idle"):
        reclaiming.release(case, actor=idling.place.red.member)


def test_an_operator_takes_it_back_at_once(idling: Idling, wish: Request, operator: User) -> None:
    with pytest.raises(InvalidInput):
        reclaiming.reclaim(idling.case(), why=" ", actor=operator)
    reclaiming.reclaim(idling.case(), why="a gang waits", actor=operator)
    wish.refresh_from_db()
    assert wish.end_asked == "cancel"
    event = RequestEvent.objects.get(event="cancel_asked")
    assert event.cause == "operator cancelled it: its idle cards are taken back, a gang waits."
    reclaim = Reclaim.objects.get()
    assert (reclaim.state, reclaim.source, reclaim.asked_by) == ("releasing", "operator", operator)
    reclaiming.reclaim(idling.case(), why="a gang waits", actor=operator)
    assert Reclaim.objects.count() == 1
    with pytest.raises(Conflict, match="being taken back"):
        ask(idling, idling.place.red.member)


def test_a_suggestion_is_answered_by_leaving_it(idling: Idling, wish: Request, operator: User) -> None:
    idling.policy(idle_policy="warn")
    for later in (30, 60):
        idling.look(later)
    assert Reclaim.objects.get().state == "asked"
    case = reclaiming.leave(idling.case(), seconds=HOUR, why="a notebook", actor=operator)
    assert (case.state, case.decision) == ("extended", "a notebook")
    reclaim = Reclaim.objects.get()
    assert (reclaim.state, reclaim.answer) == ("refused", "operator left them to their owner: a notebook")
    IdleCase.objects.update(extended_until=idling.ago(-180))
    assert idling.look(179).changed == 0
    assert idling.look(180) == Pass(suggested=1)


def test_what_nobody_knows_can_not_be_ended_here(idling: Idling, operator: User) -> None:
    card = idling.place.cards[0]
    idling.hold(card, idling.place.red)
    idling.feed(card, 0)
    idling.look()
    with pytest.raises(Conflict, match="end it in its cluster"):
        reclaiming.reclaim(idling.case(), why="x", actor=operator)
    assert not Reclaim.objects.exists()


@pytest.fixture
def seen(ledger: Ledger) -> IdleCase:
    """A job of physics that its cluster's users started, found idle."""
    ledger.lab.submit(cards=2, account="physics", user="ada")
    ledger.follow()
    first = Allocation.objects.order_by("id")[0]
    return IdleCase.objects.create(allocation=first, cards=2, since=T0, first_warned_at=T0)


def test_a_job_is_cancelled_in_its_cluster_when_an_operator_says_so(
    ledger: Ledger, seen: IdleCase, operator: User
) -> None:
    reclaiming.release(seen, actor=ledger.red.admin)
    (run,) = ledger.lab.fake.scheduler.runs
    assert run.ended_at is None, "its owner's wish waits for an operator"
    assert Reclaim.objects.get().state == "asked"
    reclaiming.reclaim(seen, why="its owner gave it back", actor=operator)
    assert run.ended_at is not None
    assert (Reclaim.objects.get().state, Reclaim.objects.get().source) == ("releasing", "operator")
    ledger.follow()
    assert not Allocation.objects.filter(span__endswith=None).exists()
    assert look() == Pass(ended=1)
    seen.refresh_from_db()
    assert (seen.state, Reclaim.objects.get().state) == ("reclaimed", "done")
    acts = JournalEntry.objects.filter(kind="job_act", actor=operator)
    assert acts.get().text.endswith("was cancelled: its idle cards are taken back, its owner gave it back.")


def test_a_cluster_out_of_reach_leaves_it_to_be_asked_again(ledger: Ledger, seen: IdleCase, operator: User) -> None:
    ledger.lab.fake.out_of_reach = True
    with pytest.raises(Exception, match=r"job .*"):
        reclaiming.reclaim(seen, why="a gang waits", actor=operator)
    reclaim = Reclaim.objects.get()
    assert (reclaim.state, bool(reclaim.answer)) == ("asked", True)
    ledger.lab.fake.out_of_reach = False
    reclaiming.reclaim(seen, why="a gang waits", actor=operator)
    reclaim.refresh_from_db()
    assert (reclaim.state, reclaim.answer) == ("releasing", "")
