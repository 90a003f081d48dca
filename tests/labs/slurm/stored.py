"""The lab as a connected cluster on record: its access, visits to it, cards on its nodes, and what `sacct` says."""

import asyncio
import base64
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from django.utils import timezone

from inventory.models import Card, ClusterConnection, Job, JobCard, Node, SchedulerNode
from inventory.services.clusters import reading, syncing
from inventory.services.clusters.opening import Access
from tests.labs.slurm.conftest import DEADLINE
from tests.labs.slurm.lab import SlurmLab

Cards = dict[str, tuple[int, ...]]
"""By the node's name: the minor numbers of the cards that a job holds there."""


def access(lab: SlurmLab) -> Access:
    """By slurmrestd with tokens that we make from Slurm's key, and the commands where that can't."""
    key = base64.b64encode((lab.folder / "etc/jwt.key").read_bytes()).decode()
    conf = lab.environment["SLURM_CONF"]
    return Access("slurm", lab.rest_url, username="root", jwt_key=key, commands=True, slurm_conf=conf)


def visit(connection: ClusterConnection) -> ClusterConnection:
    """Reads the cluster and stores what came, whatever that is; the row as it is then."""
    row = ClusterConnection.objects.get(pk=connection.pk)
    for job in syncing.sync_jobs([row], now=timezone.now()):
        syncing.store(job, asyncio.run(reading.read_cluster(job)))
    row.refresh_from_db()
    return row


def sync(connection: ClusterConnection) -> ClusterConnection:
    """A visit in which nothing may fail."""
    row = visit(connection)
    assert (row.error_kind, row.failures) == ("", [])
    return row


def synced_until(
    connection: ClusterConnection, what: str, reached: Callable[[], bool], seconds: float = DEADLINE
) -> None:
    """Syncs until it is so, or fails with what was waited for."""
    end = time.monotonic() + seconds
    while True:
        sync(connection)
        if reached():
            return
        if time.monotonic() >= end:
            rows = Job.objects.values_list("job_id", "state", "reason", "open", "accounted_at")
            raise AssertionError(f"not seen within {seconds} s: {what}; there are {list(rows)}")
        time.sleep(0.5)


def in_state(state: str, *numbers: str) -> bool:
    """Whether all these jobs have a run in this state."""
    found = Job.objects.filter(job_id__in=numbers, state=state).values_list("job_id", flat=True)
    return set(found) == set(numbers)


def over(*numbers: str) -> bool:
    """Whether all these jobs have ended, each run that held something by the accounting too.

    What is cancelled before it was eligible Slurm's accounting lists by its number only.
    """
    rows = Job.objects.filter(job_id__in=numbers)
    ended = set(rows.values_list("job_id", flat=True)) == set(numbers) and not rows.filter(open=True).exists()
    return ended and not rows.filter(accounted_at=None, started_at__isnull=False).exists()


def put_cards(*kinds: str) -> None:
    """Cards on our nodes of these kinds, eight each, as an agent tells them: slots run against the minor numbers."""
    at = timezone.now()
    nodes = [row.node_id for row in SchedulerNode.objects.all() if row.name.startswith(kinds)]
    Card.objects.bulk_create(
        Card(
            node_id=node, minor=minor, slot=str(7 - minor), uuid=f"GPU-{node}-{minor}", first_seen_at=at,
            state_since=at,
        )
        for node in nodes
        for minor in range(8)
    )  # fmt: skip
    Node.objects.filter(pk__in=nodes).update(read_at=at)


def stored_cards(job: Job) -> Cards:
    """The cards that we hold a run for the holder of."""
    found: dict[str, list[int]] = {}
    for row in JobCard.objects.filter(job=job).select_related("node", "card"):
        assert row.card is not None, job.cards_reason
        assert row.card.node_id == row.node_id
        found.setdefault(row.node.name, []).append(row.card.minor)  # type: ignore[arg-type]
    return {node: tuple(sorted(minors)) for node, minors in found.items()}


def told_cards(lab: SlurmLab, number: str) -> Cards:
    """The same by `scontrol -d show job`."""
    found = {}
    told = lab.run("scontrol", "-d", "show", "job", number).split("\n\n")  # parts and tasks are told together
    lines = next(part for part in told if part.startswith(f"JobId={number} ")).splitlines()
    for names, indices in (match.groups() for line in lines if (match := _HELD.search(line))):
        ends = [part.partition("-") for part in indices.split(",")]
        minors = tuple(minor for low, _, high in ends for minor in range(int(low), int(high or low) + 1))
        found |= dict.fromkeys(lab.run("scontrol", "show", "hostnames", names).split(), minors)
    return found


_HELD = re.compile(r"Nodes=(\S+) .*GRES=gpu:\w+:\d+\(IDX:([\d,-]+)\)")


@dataclass(frozen=True, slots=True)
class Accounted:
    """A run by `sacct`, times in epoch seconds; None for what did not happen."""

    number: str
    submitted: int
    started: int | None
    ended: int | None
    elapsed: int
    state: str
    cards: int


def accounted(lab: SlurmLab, *numbers: str) -> list[Accounted]:
    """All runs of these jobs that the accounting has; without numbers those of the day."""
    columns = "JobIDRaw,Submit,Start,End,ElapsedRaw,State,AllocTRES,NodeList"
    which = ("-j", ",".join(numbers)) if numbers else ("-u", "root")
    lines = lab.run("sacct", "-X", "-n", "-P", "-D", *which, "-o", columns).splitlines()
    rows = []
    for number, submit, start, end, elapsed, state, tres, nodes in (line.split("|") for line in lines):
        held = nodes != "None assigned"  # it tells a start and cards also of what never had a node
        cards = re.search(r"gres/gpu=(\d+)", tres) if held else None
        moments = [int(text) if text.isdigit() else None for text in (start if held else "", end)]
        word = state.split()[0].lower()
        rows.append(Accounted(number, int(submit), *moments, int(elapsed), word, int(cards[1]) if cards else 0))
    return rows


def as_accounted(job: Job) -> Accounted:
    """A run of ours in the words of `sacct`; elapsed from its GPU seconds where it had cards."""
    moments = [int(at.timestamp()) if at is not None else None for at in (job.started_at, job.ended_at)]
    elapsed = (job.final_gpu_seconds or 0) // job.cards if job.cards else 0
    whole = (job.final_gpu_seconds or 0) == elapsed * job.cards
    assert whole, (job.job_id, job.state, job.started_at, job.ended_at, job.cards, job.final_gpu_seconds)
    return Accounted(job.job_id, int(job.submitted_at.timestamp()), *moments, elapsed, job.state, job.cards)
