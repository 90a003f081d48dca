"""Both forms of Slurm's JSON give the same readings; the text of the commands gives them too."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from inventory.drivers.clusters.readings import (
    CardBinding,
    CardKind,
    ClusterNode,
    JobReading,
    JobState,
    NodeLoad,
    RunReading,
)
from inventory.drivers.clusters.slurm import text, wire
from inventory.drivers.clusters.slurm.jobs import reading_of_job, reading_of_run
from inventory.drivers.clusters.slurm.places import reading_of_node, reading_of_queue, reading_of_reservation
from inventory.observations import FailureKind

DATA = Path(__file__).parents[2] / "data" / "slurm"
FORMS = ("v38", "v42")
T0 = 1_790_000_000


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(T0 + seconds, UTC)


def jobs_of(form: str) -> dict[int, JobReading]:
    found, failures = wire.entries(wire.WireJob, wire.envelope((DATA / f"{form}-jobs.json").read_bytes()).jobs, "job")
    assert [(failure.what, failure.kind) for failure in failures] == [("job 4", FailureKind.PROTOCOL)]
    return {job.job_id: reading_of_job(job) for job in found}


def runs_of(form: str) -> dict[int, RunReading]:
    found, failures = wire.entries(wire.WireRun, wire.envelope((DATA / f"{form}-runs.json").read_bytes()).jobs, "run")
    assert failures == []
    return {run.job_id: reading_of_run(run) for run in found}


def nodes_of(form: str) -> list[ClusterNode]:
    opened = wire.envelope((DATA / f"{form}-nodes.json").read_bytes())
    found, failures = wire.entries(wire.WireNode, opened.nodes, "node")
    assert len(failures) == 1  # the nameless one costs itself only
    return [reading_of_node(node) for node in found]


def test_both_forms_say_the_same() -> None:
    """P11 P12: plain numbers or set/infinite/number, a word or a list: one reading."""
    assert jobs_of("v38") == jobs_of("v42")
    assert runs_of("v38") == runs_of("v42")
    old, new = nodes_of("v38"), nodes_of("v42")
    assert [msgspec.structs.replace(node, version="", raw_state="") for node in old] == [
        msgspec.structs.replace(node, version="", raw_state="") for node in new
    ]


@pytest.mark.parametrize("form", FORMS)
def test_jobs(form: str) -> None:
    """P12: a running job with its cards, an ended and a waiting part of an array, and one that can't be told."""
    jobs = jobs_of(form)
    running = jobs[7]
    assert running.bindings == (
        CardBinding(node="gpu-001", kind=CardKind.CARD, type="h100", count=4, indices=(0, 1, 2, 3)),
        CardBinding(node="gpu-002", kind=CardKind.CARD, type="h100", count=1, indices=(0,)),
    )
    assert (running.cards, running.cards_known, running.time_limit) == (5, True, 600)
    assert (running.key, running.started_at, running.ended_at) == (f"7-{T0}", at(10), None)
    failed = jobs[9]
    assert (failed.state, failed.exit_code, failed.exit_signal, failed.user) == (JobState.FAILED, 7, None, "uid 1002")
    assert (failed.array_id, failed.array_task, failed.time_limit, failed.ended_at) == ("8", 3, None, at(20))
    waiting = jobs[8]
    assert (waiting.held, waiting.array_tasks, waiting.started_at, waiting.cards) == (True, "4-9%2", None, 0)
    unknown = jobs[10]
    assert (unknown.cards, unknown.bindings, unknown.cards_known) == (4, (), False)


@pytest.mark.parametrize("form", FORMS)
def test_runs(form: str) -> None:
    """P12: a requeued run with its steps, one that never had nodes, one whose exit code the server lost."""
    runs = runs_of(form)
    requeued = runs[7]
    assert (requeued.state, requeued.exit_code, requeued.exit_signal) == (JobState.REQUEUED, None, 15)
    assert (requeued.elapsed, requeued.suspended, requeued.cards) == (50, 10, 5)
    assert (requeued.started_at, requeued.ended_at, requeued.time_limit) == (at(10), at(70), 600)
    assert [(step.step, step.state, step.cards, len(step.nodes)) for step in requeued.steps] == [
        ("batch", JobState.CANCELLED, 4, 1),
        ("0", JobState.RUNNING, 0, 2),
    ]
    assert (runs[12].started_at, runs[12].nodes, runs[12].cancelled_by) == (None, (), "root")
    assert (runs[13].state, runs[13].exit_code) == (JobState.FAILED, None)


@pytest.mark.parametrize("form", FORMS)
def test_nodes(form: str) -> None:
    """P11: load, drain and its owner, accelerators of three kinds."""
    first, second = nodes_of(form)
    assert (first.load, first.cordoned, first.memory) == (NodeLoad.MIXED, False, 2_000_000 * 1024**2)
    assert first.accelerators[0].used_indices == (0, 1, 5)
    assert (second.load, second.cordoned, second.owner, second.reason_at) == (NodeLoad.IDLE, True, "c7", at(100))
    assert (second.memory, second.booted_at) == (None, None)
    assert [(one.kind, one.total) for one in second.accelerators] == [
        (CardKind.CARD, 2),
        (CardKind.MIG, 2),
        (CardKind.SHARD, 8),
    ]


def test_partitions_of_both_forms_and_of_scontrol() -> None:
    """P11: grouped fields, flat fields, and a line of text."""
    new = b"""{"name": "train", "nodes": {"configured": "gpu-[001-002]"}, "partition": {"state": ["UP"]}, "accounts":
        {"allowed": "vision,speech"}, "maximums": {"time": {"set": true, "number": 60}}, "priority": {"tier": 5}}"""
    old = b"""{"name": "train", "nodes": "gpu-[001-002]", "flags": ["default"], "state": "UP", "max_time_limit": 60,
        "priority_tier": 5, "allowed_accounts": "vision,speech", "min nodes per job": 0}"""
    line = (
        "PartitionName=train AllowAccounts=vision,speech Default=YES MaxTime=01:00:00 Nodes=gpu-[001-002] "
        "PriorityTier=5 State=UP TRES=cpu=4,gres/gpu=2\nNo reservations in the system"
    )
    readings = [reading_of_queue(msgspec.json.decode(raw, type=wire.WirePartition)) for raw in (new, old)]
    readings += [queue for record in text.records(line) if (queue := text.queue_of(record))]
    assert [queue.default for queue in readings] == [None, True, True]
    assert len({msgspec.structs.replace(queue, default=None) for queue in readings}) == 1
    assert (readings[0].time_limit, readings[0].priority, readings[0].accounts) == (3600, 5, ("vision", "speech"))


def test_reservations_of_json_and_of_scontrol() -> None:
    """P11: a reservation of cards, and maintenance."""
    raw = b"""{"name": "demo", "node_list": "gpu-002", "start_time": 1790000000, "end_time": 1790003600, "users": "",
        "accounts": "vision", "flags": ["MAINT", "SPEC_NODES"], "tres": "cpu=48,gres/gpu=4", "watts": 4294967294}"""
    line = (
        f"ReservationName=demo StartTime={T0} EndTime={T0 + 3600} Duration=01:00:00 Nodes=gpu-002 NodeCnt=1 "
        "Flags=MAINT,SPEC_NODES TRES=cpu=48,gres/gpu=4 Users=(null) Accounts=vision"
    )
    readings = [reading_of_reservation(msgspec.json.decode(raw, type=wire.WireReservation))]
    readings += [entry for record in text.records(line) if (entry := text.reservation_of(record))]
    assert readings[0] == readings[1]
    assert (readings[0].cards, readings[0].maintenance, readings[0].ends_at) == (4, True, at(3600))


def row(**fields: str) -> str:
    return text.SEPARATOR.join(fields.get(name, "") for name in text.RUN_FIELDS)


def test_runs_of_sacct() -> None:
    """P12: requeues, arrays, parts of a group, steps, and a name that holds the separators."""
    common = {"Cluster": "north", "User": "ann", "Suspended": "00:00:10", "NodeList": "gpu-[001-002]"}
    first = common | {"JobIDRaw": "7", "JobID": "7", "State": "REQUEUED", "ExitCode": "0:15", "Submit": str(T0)}
    first |= {"Start": str(T0 + 10), "End": str(T0 + 70), "ElapsedRaw": "50", "TimelimitRaw": "10"}
    first |= {"AllocTRES": "cpu=3,gres/gpu=5,gres/gpu:h100=5", "JobName": "a|b\x1f\nc\x1fd"}
    lines = [
        row(**first),
        row(JobIDRaw="7.batch", JobID="7.batch", State="CANCELLED by 0", Start=str(T0 + 10), JobName="batch"),
        row(**(first | {"Submit": str(T0 + 100), "State": "RUNNING", "Start": "Unknown", "End": "Unknown"})),
        row(JobIDRaw="10", JobID="8_3", State="CANCELLED by 1001", NodeList="None assigned", Start="None"),
        row(JobIDRaw="12", JobID="11+1", State="COMPLETED", ExitCode="0:0", Suspended="1-00:00:00"),
        row(JobIDRaw="99.batch", JobID="99.batch", State="COMPLETED"),
    ]
    found, odd = text.runs_of("\n".join(lines) + "\n")
    runs = [reading_of_run(run) for run in found]
    assert odd == 1  # a step of no run
    assert [run.key for run in runs] == [f"7-{T0}", f"7-{T0 + 100}", "10-0", "12-0"]
    assert (runs[0].name, runs[0].cards, runs[0].suspended, runs[0].exit_signal) == ("a|b\x1f\nc\x1fd", 5, 10, 15)
    assert [step.step for step in runs[0].steps] == ["batch"]
    assert (runs[1].started_at, runs[1].ended_at, runs[1].state) == (None, None, JobState.RUNNING)
    assert (runs[2].array_id, runs[2].array_task, runs[2].cancelled_by) == ("8", 3, "1001")
    assert (runs[3].group_id, runs[3].group_offset, runs[3].suspended) == ("11", 1, 86_400)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (None, None),
        (0, 0),
        (5, 5),
        (0xFFFFFFFE, None),
        (0xFFFFFFFF, None),
        (-2, None),
        (wire.SetNumber(set=True, number=5), 5),
        (wire.SetNumber(set=False, number=5), None),
        (wire.SetNumber(set=True, infinite=True, number=5), None),
    ],
)
def test_numbers(value: wire.Number, number: int | None) -> None:
    """P11: not set and no limit are None and never zero."""
    assert wire.integer(value) == number


@pytest.mark.parametrize(
    ("value", "told"),
    [(0, (0, None)), (1792, (7, None)), (15, (0, 15)), (139, (0, 11)), (None, (None, None))],
)
def test_wait_status(value: int | None, told: tuple[int | None, int | None]) -> None:
    """P12: the older form's exit code is a wait status; its core dump flag is no signal."""
    assert wire.exit_of(value) == told
