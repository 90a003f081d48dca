"""The ledger of what is only observed: every run's cards to the second, whose they are, and nothing twice (P3, P8)."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from inventory.drivers.clusters.readings import JobState
from inventory.models import Job, JobCard
from pools.models import Allocation, MappingRule
from pools.selectors.unknown import cards_unknown, nodes_of_unknown
from pools.services.ledger import recording
from sensaka.platform.fields import new_ids
from tests.inventory.clusters.building import T0
from tests.pools.ledger.conftest import Ledger

pytestmark = pytest.mark.django_db


def test_a_job_of_somebody_elses_is_in_the_ledger_with_its_cards_and_tenant(ledger: Ledger) -> None:
    run = ledger.lab.submit(cards=2, account="physics", time_limit=3600)
    assert (ledger.follow().opened, ledger.rows()) == (2, [("n1", 0, 10, None, ""), ("n1", 1, 10, None, "")])
    row = Allocation.objects.select_related("job", "pool").first()
    assert row is not None
    assert (row.tenant, row.project, row.pool) == (ledger.red.tenant, ledger.red.project, ledger.pool)
    assert (row.source, row.job and row.job.job_id, row.request) == ("observed", run.job_id, None)
    assert row.ends_at == T0 + timedelta(seconds=10 + 3600)
    ledger.lab.clock.pass_(5)
    ledger.lab.fake.scheduler.end(run, JobState.COMPLETED, 0)
    assert ledger.follow().changed == 2
    assert ledger.rows() == [("n1", 0, 10, 25, "completed"), ("n1", 1, 10, 25, "completed")]


def test_a_pass_that_is_repeated_changes_nothing(ledger: Ledger) -> None:
    ledger.lab.submit(cards=3)
    ledger.follow()
    before = list(Allocation.objects.order_by("id").values())
    for _ in range(2):
        assert recording.record().written == 0
    assert list(Allocation.objects.order_by("id").values()) == before


def test_work_that_no_rule_names_is_unassigned_until_one_does(ledger: Ledger) -> None:
    run = ledger.lab.submit(cards=1, account="chemistry")
    ledger.follow()
    assert Allocation.objects.get().tenant is None
    ledger.lab.fake.scheduler.end(run, JobState.COMPLETED, 0)
    ledger.follow()
    MappingRule.objects.create(cluster=ledger.lab.cluster, kind="account", value="chemistry", tenant=ledger.blue.tenant)
    assert recording.record().changed == 1
    assert Allocation.objects.get().tenant == ledger.blue.tenant
    assert recording.record().written == 0


def test_what_is_over_keeps_its_tenant_when_a_rule_changes(ledger: Ledger) -> None:
    over = ledger.lab.submit(cards=1, account="physics")
    ledger.lab.submit(cards=1, account="physics")
    ledger.follow()
    ledger.lab.fake.scheduler.end(over, JobState.COMPLETED, 0)
    ledger.follow()
    MappingRule.objects.update(tenant=ledger.blue.tenant, project=ledger.blue.project)
    recording.record()
    tenants = dict(Allocation.objects.values_list("outcome", "tenant__slug"))
    assert tenants == {"completed": "red", "": "blue"}


def test_requeues_are_spans_of_their_own(ledger: Ledger) -> None:
    run = ledger.lab.submit(cards=1)
    ledger.follow(10)
    ledger.lab.fake.scheduler.again(run, JobState.REQUEUED)
    ledger.follow(20)
    ledger.lab.fake.scheduler.again(ledger.lab.fake.scheduler.runs[-1], JobState.PREEMPTED)
    ledger.follow(30)
    found = [(row[2:]) for row in ledger.rows()]
    # the clock stood at 20 for the first requeue and at 40 for the second
    assert found == [(10, 20, "requeued"), (20, 40, "preempted by its scheduler"), (40, None, "")]


def test_a_pause_is_a_span_of_its_own_and_the_accounting_corrects_it(ledger: Ledger) -> None:
    run = ledger.lab.submit(cards=1)
    ledger.follow(10)
    ledger.lab.clock.pass_(5)
    ledger.lab.fake.scheduler.suspend(run)
    ledger.follow(10)  # suspended at 25, seen at 35
    assert [row[2:] for row in ledger.rows(suspended=True)] == [(35, None, "")]
    assert Allocation.objects.filter(span__endswith=None).count() == 1  # the card is held all the time
    ledger.lab.clock.pass_(25)
    ledger.lab.fake.scheduler.resume(run)  # at 60: 35 s
    ledger.follow(10)
    assert [row[2:] for row in ledger.rows()] == [(10, 35, "suspended"), (35, 70, "resumed"), (70, None, "")]
    ledger.lab.clock.pass_(30)
    ledger.lab.fake.scheduler.end(run, JobState.COMPLETED, 0)
    ledger.follow(10)
    assert [row[2:] for row in ledger.rows()] == [(10, 35, "suspended"), (35, 70, "resumed"), (70, 100, "completed")]
    job = Job.objects.get()
    held = sum(row[3] - row[2] for row in ledger.rows(suspended=False) if row[3] is not None)
    assert (held, job.suspended, job.final_gpu_seconds) == (55, 35, 55)  # as the scheduler accounts, to the second


def test_late_accounting_moves_the_end(ledger: Ledger) -> None:
    run = ledger.lab.submit(cards=1)
    ledger.follow(10)
    ledger.lab.fake.scheduler.end(run, JobState.COMPLETED, 0)
    ledger.follow(10)
    Job.objects.get().save()  # a change without a difference
    assert recording.record().written == 0
    job = Job.objects.get()
    job.ended_at = T0 + timedelta(seconds=13)
    job.save()
    assert recording.record().changed == 1
    assert ledger.rows() == [("n1", 0, 10, 13, "completed")]


def test_a_card_that_passes_from_one_to_another_within_a_second(ledger: Ledger) -> None:
    """The accounts of two jobs may overlap by moments; the later one has the card."""
    first = ledger.lab.submit(cards=4, nodes=("n1",))
    ledger.follow(10)
    ledger.lab.fake.scheduler.end(first, JobState.COMPLETED, 0)
    ledger.lab.submit(cards=4, nodes=("n1",))
    ledger.follow(10)
    Job.objects.filter(job_id=first.job_id).update(ended_at=T0 + timedelta(seconds=22))
    Job.objects.get(job_id=first.job_id).save()
    assert recording.record().clashes == 4
    assert [row[2:4] for row in ledger.rows(job__job_id=first.job_id)] == [(10, 20)] * 4
    assert recording.record().written == 0


def test_jobs_of_unknown_cards_are_told_and_hold_nothing(ledger: Ledger) -> None:
    ledger.lab.submit(cards=2)
    ledger.lab.sync()
    JobCard.objects.update(card=None)
    job = Job.objects.get()
    job.cards_known, job.cards_reason = False, "the scheduler does not tell"
    job.save()
    assert recording.record().unknown == 1
    assert not Allocation.objects.exists()
    number, (told,) = cards_unknown()
    assert (number, told.job, told.cards, told.why) == (1, job.pk, 2, "the scheduler does not tell")
    assert nodes_of_unknown() == {ledger.lab.node("n1").pk}


@pytest.mark.parametrize("number", [20, 500])
def test_queries_do_not_grow_with_jobs(ledger: Ledger, number: int) -> None:
    _many(ledger, number)
    with CaptureQueriesContext(connection) as queries:
        tally = recording.record()
    assert (tally.opened, len(queries)) == (number, EXPECTED)
    with CaptureQueriesContext(connection) as again:
        assert recording.record().written == 0
    assert len(again) == REPEATED


EXPECTED, REPEATED = 19, 11


def test_5000_jobs_in_one_pass(ledger: Ledger) -> None:
    _many(ledger, 5000)
    assert recording.record().opened == 5000
    assert Allocation.objects.filter(tenant=ledger.red.tenant).count() == 5000
    assert recording.record().written == 0


def _many(ledger: Ledger, number: int) -> None:
    """Jobs of ten seconds, one after the other on each of the eight cards."""
    cards = list(ledger.cards.values())
    rows = []
    for place, key in enumerate(new_ids(number)):
        start = T0 + timedelta(seconds=10 * (place // len(cards)))
        rows.append(
            Job(
                id=key, cluster=ledger.lab.cluster, key=f"many-{place}", job_id=str(place), account="physics",
                state="completed", open=False, submitted_at=start, started_at=start,
                ended_at=start + timedelta(seconds=10), seen_at=start, cards=1, cards_known=True,
            )
        )  # fmt: skip
    Job.objects.bulk_create(rows)
    JobCard.objects.bulk_create(
        JobCard(job=row, node_id=cards[place % len(cards)].node_id, card=cards[place % len(cards)])
        for place, row in enumerate(rows)
    )
