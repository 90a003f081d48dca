"""From the queue to the cluster and back: launched once, followed to its end, ended when asked (P9, P11, P14)."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from inventory.drivers.clusters.capabilities import ActResult, JobSpec, Outcome
from inventory.drivers.clusters.readings import JobState
from inventory.models import Job
from pools.models import Allocation, Hold, MappingRule, Request, RequestEvent
from pools.selectors.access import require_operator
from pools.services import extensions
from pools.services.launching import carrying_out
from pools.services.launching.carrying_out import carry_out_due
from pools.services.requests import cancel, release
from sensaka.identity.models import Role
from tests.pools.admission.building import Managed
from tests.pools.building import person

pytestmark = pytest.mark.django_db
NODE_AND_MINOR = [("n1", 0), ("n1", 1), ("n1", 2), ("n1", 3), ("n2", 0), ("n2", 1), ("n2", 2), ("n2", 3)]


def state(request: Request) -> str:
    request.refresh_from_db()
    return request.state


def test_a_gang_waits_for_the_cards_starts_on_the_planned_nodes_and_completes(managed: Managed) -> None:
    managed.spec.cards = 4
    managed.spec.save()
    other = managed.ledger.lab.submit(cards=2, account="physics", time_limit=600)
    managed.ledger.follow()
    request = managed.ask(2, name="gang")
    managed.turn()
    assert {one.code for one in managed.reasons(request)} >= {"GANG_INCOMPLETE"}
    assert request.expected_start is not None
    managed.ledger.lab.fake.scheduler.end(other, JobState.COMPLETED, 0)
    managed.turn()
    assert state(request) == "running"
    assert managed.held(request) == NODE_AND_MINOR
    (run,) = [run for run in managed.runs() if run.spec.mark]
    assert (run.spec.mark, sorted(run.nodes), run.spec.cards) == (request.mark, ["n1", "n2"], 4)
    assert (run.spec.account, run.spec.card_type, run.spec.requeue) == ("physics", "a100", False)
    assert run.spec.environment == {"SENSAKA_REQUEST": str(request.pk)}
    assert request.job_reference == run.job_id
    assert request.ends_at == run.started_at + timedelta(hours=1)  # type: ignore[operator]
    assert set(Allocation.objects.filter(request=request).values_list("unit", flat=True)) == {0, 1}
    managed.ledger.lab.clock.pass_(30)
    managed.ledger.lab.fake.scheduler.end(run, JobState.COMPLETED, 0)
    managed.ledger.follow()
    assert state(request) == "completed"
    assert request.outcome == "completed"
    assert managed.history(request) == ["admit", "submitted", "launch", "complete"]
    rows = Allocation.objects.filter(request=request)
    assert {(row.span.lower, row.span.upper) for row in rows} == {(run.started_at, run.ended_at)}


@pytest.mark.parametrize(
    ("end", "code", "becomes"),
    [
        (JobState.FAILED, 3, "failed"),
        (JobState.CANCELLED, None, "cancelled"),
        (JobState.NODE_FAIL, None, "failed"),
        (JobState.OUT_OF_MEMORY, None, "failed"),
    ],
)
def test_how_work_ends(managed: Managed, end: JobState, code: int | None, becomes: str) -> None:
    request = managed.ask(2)
    managed.turn()
    managed.ledger.lab.clock.pass_(5)
    managed.ledger.lab.fake.scheduler.end(managed.runs()[0], end, code)
    managed.ledger.follow()
    assert state(request) == becomes
    assert not managed.held(request)


def test_its_time_limit_ends_it(managed: Managed) -> None:
    request = managed.ask(2, time_limit=120)
    managed.turn()
    managed.ledger.follow(119)
    assert state(request) == "running"
    managed.ledger.follow(10)
    assert state(request) == "timed_out"
    (row,) = set(Allocation.objects.filter(request=request).values_list("span", "outcome"))
    assert (row[0].upper - row[0].lower, row[1]) == (timedelta(seconds=120), "ended by its time limit")


def test_work_that_is_over_before_anybody_saw_it_run(managed: Managed) -> None:
    request = managed.ask(1)
    managed.admit()
    managed.launch()
    managed.ledger.lab.clock.pass_(5)
    managed.ledger.lab.fake.scheduler.end(managed.runs()[0], JobState.COMPLETED, 0)
    managed.ledger.follow()
    assert state(request) == "completed"
    # its cards could no longer be seen: they are those of the plan, for as long as it ran
    row = Allocation.objects.get(request=request)
    assert (row.span.upper - row.span.lower, row.outcome) == (timedelta(seconds=5), "completed")


def test_the_cluster_may_choose_other_cards_of_the_node(managed: Managed) -> None:
    managed.ask(2, name="first")
    second = managed.ask(1, name="second")
    managed.admit()
    planned = managed.held(second)
    blocker = managed.ledger.lab.submit(cards=1, nodes=(planned[0][0],))  # takes minor 0 before anything is launched
    managed.ledger.follow()
    managed.launch()
    managed.ledger.follow()
    assert set(Request.objects.values_list("state", flat=True)) == {"running"}
    seen = {(row[0], row[1]): row for row in managed.ledger.rows(span__endswith=None)}
    assert len(seen) == 4
    job = Job.objects.get(job_id=blocker.job_id)
    assert Allocation.objects.get(job=job).card == managed.ledger.cards[planned[0][0], 0]


def test_observed_work_keeps_the_cards_and_the_plan_is_made_again(managed: Managed) -> None:
    request = managed.ask(8)
    managed.admit()
    assert state(request) == "starting"
    managed.ledger.lab.submit(cards=1, account="physics")
    assert managed.ledger.follow().clashes == 1
    assert state(request) == "queued"
    assert (managed.history(request), managed.held(request)) == (["admit", "return"], [])
    told = RequestEvent.objects.get(request=request, event="return").cause  # its team reads this, so it names nobody
    assert told == "Other work runs on cards that were promised to it: it waits again."
    assert Allocation.objects.get().request is None
    managed.turn()
    assert {one.code for one in managed.reasons(request)} & {"NO_FREE_CARDS", "GANG_INCOMPLETE"}


def test_what_was_submitted_is_withdrawn_when_its_cards_are_taken(managed: Managed) -> None:
    """The scheduler got both: somebody else's first. Ours leaves its queue before it is planned again."""
    request = managed.ask(8)
    managed.admit()
    blocker = managed.ledger.lab.submit(cards=4)
    managed.launch()
    managed.ledger.follow()
    assert managed.history(request) == ["admit", "submitted", "withdraw"]
    managed.launch()
    managed.ledger.follow()
    assert state(request) == "queued"
    assert [run.state for run in managed.runs() if run.spec.mark] == [JobState.CANCELLED]
    managed.ledger.lab.fake.scheduler.end(blocker, JobState.COMPLETED, 0)
    managed.turn()
    assert (state(request), request.attempt) == ("running", 2)


def test_a_launch_that_nobody_heard_of_again_is_found_by_its_mark(
    managed: Managed, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = managed.ledger.lab.fake
    submit = fake.submit

    async def into_the_dark(job: JobSpec, *, deadline: float) -> ActResult:
        await submit(job, deadline=deadline)
        return ActResult(outcome=Outcome.UNKNOWN, detail="the line was cut")

    monkeypatch.setattr(fake, "submit", into_the_dark)
    request = managed.ask(1)
    managed.admit()
    assert managed.launch().failed == 1
    assert (state(request), request.job_reference) == ("starting", "")
    assert managed.launch().failed == 0
    assert state(request) == "starting"
    assert (request.job_reference, len(managed.runs())) == (managed.runs()[0].job_id, 1)


def test_a_crash_before_the_answer_was_stored_starts_no_second_job(
    managed: Managed, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = managed.ask(1)
    managed.admit()

    def crash(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(carrying_out, "store", crash)
        with pytest.raises(KeyboardInterrupt):
            managed.launch()
    assert len(managed.runs()) == 1
    managed.launch()
    managed.ledger.follow()
    assert (state(request), len(managed.runs())) == ("running", 1)


def test_a_lease_keeps_others_from_its_errand(managed: Managed) -> None:
    managed.ask(1)
    managed.admit()
    Request.objects.update(leased_until=timezone.now() + timedelta(seconds=30))
    assert carry_out_due().errands == 0
    Request.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    assert carry_out_due().errands == 1


def test_out_of_reach_it_waits_in_starting_and_is_launched_later(managed: Managed) -> None:
    request = managed.ask(1)
    managed.admit()
    managed.ledger.lab.fake.out_of_reach = "no route"
    assert managed.launch().failed == 1
    assert state(request) == "starting"
    managed.ledger.lab.fake.out_of_reach = ""
    managed.launch()
    managed.ledger.follow()
    assert state(request) == "running"


def test_what_the_cluster_refuses_waits_with_its_words_and_fails_in_the_end(
    managed: Managed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(managed.ledger.lab.fake.scheduler, "refusal", lambda job: "your account may not")
    request = managed.ask(1)
    for attempt in (1, 2):
        managed.turn()
        assert (state(request), request.attempt) == ("queued", attempt)
        assert not managed.held(request)
        managed.admit()
        (reason,) = managed.reasons(request)
        assert reason.code == "HELD"
        assert "ada refused it: your account may not" in reason.detail
        Hold.objects.update(lifted_at=timezone.now())
    managed.turn()
    assert (state(request), request.attempt) == ("failed", 3)
    assert request.outcome == "ada refused it: your account may not"
    assert not Allocation.objects.filter(request=request).exists()


def test_cancelling_ends_the_work_first(managed: Managed) -> None:
    request = managed.ask(2)
    managed.turn()
    request.refresh_from_db()
    cancel(request, actor=None, why="wrong data")
    assert state(request) == "running"
    managed.launch()
    managed.ledger.follow()
    assert state(request) == "cancelled"
    assert managed.runs()[0].state is JobState.CANCELLED
    assert not managed.held(request)


def test_giving_cards_back_completes_it(managed: Managed) -> None:
    request = managed.ask(2, launch="cards", script="")
    managed.turn()
    assert "sleep infinity" in managed.runs()[0].spec.script
    request.refresh_from_db()
    release(request, actor=None)
    managed.launch()
    managed.ledger.follow()
    assert (state(request), managed.held(request)) == ("completed", [])


def test_cancelling_before_the_launch_leaves_nothing_behind(managed: Managed) -> None:
    request = managed.ask(2)
    managed.admit()
    request.refresh_from_db()
    cancel(request, actor=None)
    managed.launch()
    assert state(request) == "cancelled"
    assert not Allocation.objects.exists()
    assert not managed.runs()


def test_a_higher_class_takes_the_cards_after_signal_and_grace(
    managed: Managed, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake, told = managed.ledger.lab.fake, []
    signal = fake.signal

    async def heard(job_id: str, name: str, *, deadline: float) -> ActResult:
        told.append((job_id, name))
        return await signal(job_id, name, deadline=deadline)

    monkeypatch.setattr(fake, "signal", heard)
    low = managed.ask(8, name="low")
    managed.turn()
    high = managed.ask(6, name="high", priority=managed.urgent)
    managed.turn()
    assert told == [(low.job_reference or managed.runs()[0].job_id, "TERM")]
    assert state(low) == "running"
    managed.turn()
    assert len(told) == 1
    Request.objects.filter(pk=low.pk).update(leaves_at=timezone.now())  # the grace is over
    managed.launch()
    managed.ledger.follow()
    assert (state(low), low.preempted, managed.held(low)) == ("queued", 1, [])
    managed.turn()
    assert state(high) == "running"
    assert len(managed.held(high)) == 6
    managed.ledger.lab.fake.scheduler.end(managed.runs()[-1], JobState.COMPLETED, 0)
    managed.turn()
    assert (state(low), low.attempt, len(managed.held(low))) == ("running", 2, 8)
    assert managed.history(low) == [
        "admit", "submitted", "launch", "preempt_asked", "told", "preempt", "requeue", "admit", "submitted", "launch",
    ]  # fmt: skip


def test_an_extension_moves_the_limit_in_the_cluster(managed: Managed) -> None:
    request = managed.ask(1, time_limit=600)
    managed.turn()
    request.refresh_from_db()
    operator = person("operator", Role.OPERATOR)
    require_operator(operator)
    extensions.ask_extension(request, seconds=1200, justification="not there yet", actor=operator)
    managed.launch()
    assert managed.runs()[0].spec.time_limit == 1800
    managed.ledger.follow()
    assert managed.launch().errands == 0
    row = Allocation.objects.get(request=request)
    assert row.ends_at == row.span.lower + timedelta(seconds=1800)


def test_a_copied_mark_does_not_make_work_a_requests_own(managed: Managed) -> None:
    request = managed.ask(1)
    managed.turn()
    managed.ledger.lab.submit(cards=1, mark=request.mark, account="physics")
    managed.ledger.follow()
    assert len(managed.held(request)) == 1
    assert Allocation.objects.filter(request=None).count() == 1


def test_late_accounting_of_an_earlier_attempt_stays_with_its_request(managed: Managed) -> None:
    request = managed.ask(1)
    managed.turn()
    managed.ledger.lab.clock.pass_(20)
    managed.ledger.lab.fake.scheduler.again(managed.runs()[0], JobState.REQUEUED)
    managed.ledger.follow()
    job = Job.objects.get(state="requeued")
    job.ended_at -= timedelta(seconds=3)  # type: ignore[operator]
    job.save()
    managed.ledger.follow()
    first = Allocation.objects.filter(job=job).get()
    assert (first.request, first.span.upper) == (request, job.ended_at)


def test_uneven_gangs_are_spread_as_far_as_the_nodes_go(managed: Managed) -> None:
    managed.ledger.lab.submit(cards=2, nodes=("n1",))
    managed.ledger.follow()
    request = managed.ask(6)
    managed.turn()
    assert state(request) == "running"
    (run,) = [run for run in managed.runs() if run.spec.mark]
    assert (run.spec.cards, run.spec.card_total) == (0, 6)
    assert managed.held(request) == NODE_AND_MINOR[2:]


def test_without_a_rule_the_account_is_left_to_the_scheduler(managed: Managed) -> None:
    MappingRule.objects.all().delete()
    request = managed.ask(1)
    managed.turn()
    assert managed.runs()[0].spec.account == ""
    assert Allocation.objects.get(request=request).tenant == managed.ledger.red.tenant
