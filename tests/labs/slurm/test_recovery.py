"""What is on record while parts of a real Slurm fail, and after: lost with a reason, dated, recovered, not doubled."""

import dataclasses
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from inventory.models import ClusterConnection, Job, JobCard, JournalEntry, Node, SchedulerNode
from inventory.services.clusters import reading
from inventory.services.clusters.opening import Access
from tests.labs.slurm.conftest import require
from tests.labs.slurm.lab import SlurmLab
from tests.labs.slurm.stored import (
    Accounted,
    access,
    accounted,
    as_accounted,
    in_state,
    over,
    put_cards,
    stored_cards,
    sync,
    synced_until,
    told_cards,
    visit,
)

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("slurm"), pytest.mark.django_db]
Connected = Callable[[Access], ClusterConnection]


class Record:
    """A job on two cards, synced while it runs; whether what is on record of the cluster stays as it is."""

    def __init__(self, lab: SlurmLab, connection: ClusterConnection) -> None:
        self.lab, self.connection = lab, connection
        sync(connection)
        put_cards("h100")
        self.number = lab.submit("--gres=gpu:2", script="while [ ! -e end ]; do sleep 0.2; done")
        synced_until(connection, "it runs", lambda: in_state("running", self.number))
        self.job = Job.objects.get(job_id=self.number)
        self.cards = stored_cards(self.job)
        assert self.cards == told_cards(lab, self.number)
        self.before = self._facts()
        self.read_at = self._read_at()

    def loses(self, kinds: set[str], times: int = 3) -> ClusterConnection:
        """Visits that give nothing: the reason is told, the facts stay with their dates, the loss is in the journal."""
        for _ in range(times):
            row = visit(self.connection)
            assert row.error_kind in kinds, (row.error_kind, row.error_detail)
            assert row.error_detail
        assert (row.misses, self._facts(), self._read_at()) == (times, self.before, self.read_at)
        assert row.failing_since is not None
        assert JournalEntry.objects.filter(kind="cluster_lost").count() == (times >= 3)
        return row

    def recovers(self, *others: str) -> None:
        """It goes on: the same run on the same cards, ended once; jobs that came meanwhile are there once."""
        while datetime.now(UTC).replace(microsecond=0) <= max(self.read_at):  # readings are dated in whole seconds
            time.sleep(0.05)
        row = sync(self.connection)
        assert (row.misses, row.failing_since) == (0, None)
        assert row.nodes_read_at is not None
        assert row.jobs_read_at is not None
        assert row.nodes_read_at > self.read_at[0]
        assert row.jobs_read_at > self.read_at[1]
        lost = JournalEntry.objects.filter(kind="cluster_lost").count()
        assert JournalEntry.objects.filter(kind="cluster_recovered").count() == lost
        self.end()
        numbers = [self.number, *others]
        synced_until(self.connection, "all is over", lambda: over(*numbers) and self._told(numbers))
        sync(self.connection)
        rows = sorted(Job.objects.filter(job_id__in=numbers), key=lambda job: int(job.job_id))
        assert [job.pk for job in rows if job.job_id == self.number] == [self.job.pk]
        assert stored_cards(self.job) == self.cards
        assert [job.job_id for job in rows] == numbers
        assert [as_accounted(job) for job in rows] == self._told(numbers)
        assert (SchedulerNode.objects.count(), Node.objects.count()) == (12, 12)

    def _told(self, numbers: list[str]) -> list[Accounted]:
        """The runs by `sacct`; none while one has no end, for slurmdbd writes that last."""
        runs = accounted(self.lab, *numbers)
        return sorted(runs, key=lambda run: int(run.number)) if all(run.ended for run in runs) else []

    def end(self) -> None:
        (self.lab.folder / "work/end").touch()

    def _facts(self) -> list[object]:
        nodes = SchedulerNode.objects.order_by("name").values_list("name", "node", "load", "raw_state", "seen_at")
        jobs = Job.objects.order_by("pk").values_list("pk", "state", "open", "missing_since", "lost_at")
        return [*nodes, *jobs, *JobCard.objects.order_by("pk").values_list("job", "card")]

    def _read_at(self) -> tuple[datetime, datetime]:
        row = ClusterConnection.objects.get(pk=self.connection.pk)
        assert row.nodes_read_at is not None
        assert row.jobs_read_at is not None
        return row.nodes_read_at, row.jobs_read_at


Recorded = Callable[[Access], Record]


@pytest.fixture
def record(quiet: SlurmLab, connected: Connected) -> Iterator[Recorded]:
    yield lambda way: Record(quiet, connected(way))
    (quiet.folder / "work/end").unlink(missing_ok=True)


def test_slurmrestd_away_and_back(quiet: SlurmLab, record: Recorded) -> None:
    """P11 I12: without it nothing is read; the run that starts meanwhile is there once afterwards."""
    kept = record(dataclasses.replace(access(quiet), commands=False))
    with quiet.away("slurmrestd"):
        kept.loses({"unreachable"})
        meanwhile = quiet.submit("--gres=gpu:1", script="exit 0")
    kept.recovers(meanwhile)


def test_slurmctld_restarted(quiet: SlurmLab, record: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    """P12: the accounting alone does not make a cluster in reach; the run goes on as the same one."""
    monkeypatch.setattr(reading, "_CALL", 3.0)
    kept = record(access(quiet))
    with quiet.away("slurmctld", signal.SIGTERM):
        kept.loses({"unreachable", "timeout"})
    monkeypatch.undo()
    kept.recovers()


def test_slurmdbd_away_and_back(quiet: SlurmLab, record: Recorded) -> None:
    """P12: nodes and jobs are read on; the ends that the accounting has yet to tell arrive once."""
    kept = record(access(quiet))
    watermark = ClusterConnection.objects.get(pk=kept.connection.pk).runs_watermark
    with quiet.away("slurmdbd", signal.SIGTERM):
        kept.end()
        for _ in range(60):
            row = visit(kept.connection)
            assert row.jobs_read_at is not None
            # times are whole seconds: a quick machine reads twice in one
            if in_state("completed", kept.number) and row.jobs_read_at > kept.read_at[1]:
                break
        kept.job.refresh_from_db()
        assert (kept.job.state, kept.job.open, kept.job.accounted_at) == ("completed", False, None)
        assert (row.error_kind, row.runs_watermark) == ("", watermark)
        assert row.failures
        assert row.jobs_read_at > kept.read_at[1]
    synced_until(kept.connection, "the accounting is back", lambda: over(kept.number), seconds=60)
    kept.recovers()


@pytest.mark.parametrize("clock", ["-20m", "+20m"])
def test_the_clock_of_our_host_is_wrong(quiet: SlurmLab, record: Recorded, clock: str) -> None:
    """P11: munge refuses what is too old or from the future (five minutes); with the right clock all goes on."""
    require(None if shutil.which("faketime") else "not installed: faketime (a Debian package)")
    kept = record(Access("slurm", commands=True, slurm_conf=quiet.start_other_host()))
    quiet.start_other_host(clock)
    row = kept.loses({"unreachable"})
    assert "clocks" in row.error_detail
    meanwhile = quiet.submit("--gres=gpu:1", script="exit 0")
    quiet.start_other_host()
    kept.recovers(meanwhile)
