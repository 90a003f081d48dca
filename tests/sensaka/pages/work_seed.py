"""What schedulers run on the seeded fleet: a Slurm that answers, a Kubernetes out of reach, jobs in every state."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from inventory.models import (
    Card,
    Cluster,
    ClusterConnection,
    Cordon,
    Job,
    JobCard,
    JobNode,
    JournalEntry,
    JournalKind,
    Node,
    Reservation,
    SchedulerNode,
    SchedulerQueue,
)
from tests.sensaka.pages.seed import Seeded

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


@dataclass
class Work:
    """What was made, by name."""

    made: Seeded
    now: datetime
    clusters: dict[str, Cluster] = field(default_factory=dict)
    connections: dict[str, ClusterConnection] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    cordons: dict[str, Cordon] = field(default_factory=dict)

    def cards_of(self, node: str) -> list[Card]:
        return [card for card in self.made.cards if card.node_id == self.made.nodes[node].pk]

    def run(
        self, job_id: str, *, on: dict[str, tuple[int, ...]] | None = None, ago: float = 2.0, name: str = "",
        cluster: str = "central", known: bool | None = True, **more: Any,
    ) -> Job:  # fmt: skip
        """A run submitted `ago` hours ago; `on` says which places of which nodes' cards it holds."""
        on = on or {}
        held = sum(len(places) for places in on.values())
        facts: dict[str, Any] = {
            "cluster": self.clusters[cluster],
            "key": f"{job_id}-{len(self.jobs)}",
            "job_id": job_id,
            "workload": job_id.split("_")[0],
            "name": name or f"train-{job_id}",
            "user": "mira",
            "account": "vision",
            "queue": "gpu",
            "qos": "normal",
            "state": "running",
            "submitted_at": self.now - ago * HOUR,
            "cards": held,
            "cards_requested": held,
            "cards_known": known if held else None,
            "node_names": list(on),
            "seen_at": self.now,
            "simulated": True,
            **more,
        }
        if facts["state"] != "pending" and "started_at" not in facts:
            facts["started_at"] = facts["submitted_at"] + 5 * MINUTE
        facts.setdefault("open", facts["state"] in ("pending", "running", "suspended", "completing"))
        job = Job.objects.create(**facts)
        JobNode.objects.bulk_create(JobNode(job=job, node=self.made.nodes[node]) for node in on)
        JobCard.objects.bulk_create(
            JobCard(job=job, node=self.made.nodes[node], card=self.cards_of(node)[place], index=place, type="h100")
            for node, places in on.items()
            for place in places
            if known
        )
        self.jobs[job_id if job_id not in self.jobs else f"{job_id}-{len(self.jobs)}"] = job
        return job

    def over(self, job_id: str, *, lasted: float = 1.0, state: str = "completed", **more: Any) -> Job:
        """A run that ended after `lasted` hours."""
        start = self.now - more.pop("ago", 6.0) * HOUR
        on = more.get("on") or {}
        cards = more.get("cards", sum(len(places) for places in on.values()))
        return self.run(
            job_id, state=state, open=False, started_at=start, ended_at=start + lasted * HOUR,
            submitted_at=start - 4 * MINUTE, final_gpu_seconds=int(cards * lasted * 3600),
            accounted_at=start + lasted * HOUR, **more,
        )  # fmt: skip


CAPABILITIES = [
    *({"capability": name, "available": True, "via": "slurmrestd"} for name in
      ("nodes", "queues", "reservations", "jobs", "runs", "cordon", "submit", "place", "hold", "signal", "cancel",
       "requeue", "tenants", "qos")),
    {"capability": "suspend", "available": False, "reason": "slurmrestd has no such call; it needs Slurm's commands."},
    {"capability": "follow", "available": True, "via": "reading again"},
]  # fmt: skip


def build(made: Seeded, *, runs: int = 24) -> Work:
    """Connections, nodes, queues, cordons and jobs in every state; `runs` more ended ones for a full timeline."""
    now = timezone.now().replace(microsecond=0)
    work = Work(made, now)
    for node in made.nodes.values():
        assert node.cluster is not None
        work.clusters[node.cluster.name.removesuffix("-cluster")] = node.cluster
    _connections(work)
    _scheduler_nodes(work)
    _jobs(work)
    _ended(work, runs)
    _cordons(work)
    return work


def _connections(work: Work) -> None:
    now = work.now
    Cluster.objects.filter(pk=work.clusters["central"].pk).update(scheduler="slurm")
    Cluster.objects.filter(pk=work.clusters["regional"].pk).update(scheduler="kubernetes")
    work.connections["central"] = ClusterConnection.objects.create(
        cluster=work.clusters["central"], scheduler="slurm", address="http://slurm.example.org:6820", username="root",
        jwt_key="c2VjcmV0LXNlY3JldC1zZWNyZXQ=", version="24.11.5", interface="v0.0.42", tested=True,
        capabilities=CAPABILITIES, scheduler_name="ada", enforces=["cards"], interval=3600,
        token_expires_at=now + 0.8 * HOUR, described_at=now, nodes_read_at=now, jobs_read_at=now, runs_read_at=now,
        attempted_at=now, succeeded_at=now, elapsed=0.4, due_at=now + HOUR, simulated=True,
    )  # fmt: skip
    work.connections["regional"] = ClusterConnection.objects.create(
        cluster=work.clusters["regional"], scheduler="kubernetes", kubeconfig="apiVersion: v1", version="v1.36.0",
        interface="v1", capabilities=[{"capability": "jobs", "available": True, "via": "API server"}], interval=3600,
        described_at=now - 3 * HOUR, nodes_read_at=now - 2.5 * HOUR, jobs_read_at=now - 2.5 * HOUR,
        attempted_at=now, succeeded_at=now - 2.5 * HOUR, failing_since=now - 2.5 * HOUR, misses=9,
        error_kind="unreachable", error_detail="connection refused at k8s.example.org:6443", due_at=now + HOUR,
        simulated=True,
    )  # fmt: skip
    JournalEntry.objects.create(
        at=now - 2.5 * HOUR, kind=JournalKind.CLUSTER_LOST, cluster=work.clusters["regional"], source="cluster",
        text="Kubernetes of regional-cluster is out of reach: connection refused.",
    )  # fmt: skip


def _scheduler_nodes(work: Work) -> None:
    connection = work.connections["central"]
    names = [name for name in work.made.nodes if name.startswith("a0")]
    for name in names:
        SchedulerNode.objects.create(
            connection=connection, node=work.made.nodes[name], name=name, hostname=name, load="mixed",
            raw_state="MIXED", queues=["gpu", "debug"], cpus=128, memory=1 << 40, version="24.11.5",
            accelerators=[{"kind": "card", "type": "h100", "total": 8, "used": 5, "used_indices": [0, 1, 2, 3, 4]}],
            seen_at=work.now,
        )  # fmt: skip
    SchedulerNode.objects.create(
        connection=connection, name="login01", load="idle", raw_state="IDLE", queues=["debug"], seen_at=work.now
    )
    SchedulerNode.objects.create(
        connection=connection, name="old07", load="down", raw_state="DOWN", seen_at=work.now - 90 * HOUR,
        gone_at=work.now - 80 * HOUR,
    )  # fmt: skip
    SchedulerNode.objects.create(
        connection=work.connections["regional"], node=work.made.nodes["r01-gpu01"], name="r01-gpu01", load="mixed",
        raw_state="Ready", seen_at=work.now - 3 * HOUR,
    )  # fmt: skip
    for name, default, limit in (("gpu", True, 72 * 3600), ("debug", False, 3600)):
        SchedulerQueue.objects.create(
            connection=connection, name=name, nodes=names, default=default, time_limit=limit, priority=10
        )
    Reservation.objects.create(
        connection=connection, name="workshop", nodes=names[:1], starts_at=work.now + 20 * HOUR,
        ends_at=work.now + 24 * HOUR, accounts=["teaching"],
    )  # fmt: skip


def _jobs(work: Work) -> None:
    first, second = "a01-gpu01", next(name for name in work.made.nodes if name.startswith("a0") and name != "a01-gpu01")
    work.run("90210", on={first: (0,)}, name="finetune-llama", ago=5, time_limit=24 * 3600)
    work.run("90214", on={first: (3, 4), second: (0, 1)}, name="pretrain-vit-l", user="jonas", ago=3, time_limit=None)
    work.run("90220_3", on={second: (2,)}, name="sweep", array_id="90220", array_task=3, ago=1, time_limit=7200)
    work.run("90231", on={second: (5, 6)}, known=False, name="render", user="petra", account="graphics", ago=2,
             cards_reason="The scheduler says 2 cards, but not which.", time_limit=3600 * 8)  # fmt: skip
    work.run("90233", on={first: (5,)}, name="paused", state="suspended", ago=4, suspended=1200, time_limit=3600 * 10)
    work.run("90240", state="pending", name="vit-h", user="jonas", reason="Priority", cards_requested=16, ago=1.5)
    work.run("90241", state="pending", name="eval", reason="Resources", cards_requested=4, ago=0.4)
    work.run("90242", state="pending", name="held-by-me", reason="JobHeldUser", held=True, cards_requested=1, ago=8)
    work.run("90220_4", state="pending", name="sweep", array_id="90220", array_tasks="4-31%4",
             reason="JobArrayTaskLimit", cards_requested=1, ago=1)  # fmt: skip
    requeued = work.over("90250", state="requeued", on={first: (1,)}, ago=9, lasted=0.5, name="long-run")
    work.run("90250", on={second: (4,)}, name="long-run", ago=8, restarts=1, time_limit=48 * 3600)
    assert requeued.job_id == "90250"
    for number, (state, more) in enumerate(
        {
            "failed": {"exit_code": 1, "reason": "NonZeroExitCode"},
            "timeout": {"reason": "TimeLimit"},
            "cancelled": {"cancelled_by": "mira", "exit_signal": 15},
            "node_fail": {"reason": "NodeDown"},
            "out_of_memory": {"exit_code": 0, "exit_signal": 9, "reason": "OutOfMemory"},
            "preempted": {},
        }.items()
    ):
        hours = 8 - number
        work.over(f"9010{number}", state=state, on={first: (2,)}, ago=hours, lasted=0.7, name=f"run-{state}", **more)
    work.run("90111", state="unknown", open=False, on={second: (7,)}, ago=20, name="vanished",
             lost_at=work.now - 15 * HOUR, seen_at=work.now - 15.5 * HOUR, final_gpu_seconds=16_200)  # fmt: skip
    steps = [
        {"step": "batch", "name": "batch", "state": "completed", "started_at": (work.now - 6 * HOUR).isoformat(),
         "ended_at": (work.now - 5 * HOUR).isoformat(), "nodes": [first], "cards": 1},
        {"step": "0", "name": "train.py", "state": "completed", "started_at": (work.now - 6 * HOUR).isoformat(),
         "ended_at": (work.now - 5.1 * HOUR).isoformat(), "nodes": [first], "cards": 1},
    ]  # fmt: skip
    work.over("90120", on={first: (6,)}, name="with-steps", exit_code=0, steps=steps)
    work.run("vision/train-7/pod/train-7-0", cluster="regional", on={"r01-gpu01": (0,)}, ago=4, name="train-7-0",
             account="vision", user="", queue="", qos="high", workload="Job/train-7")  # fmt: skip


def _ended(work: Work, runs: int) -> None:
    """Ended runs, one after another on the cards of the first rack."""
    names = [name for name in work.made.nodes if name.startswith("a0")]
    for number in range(runs):
        state = "failed" if number % 7 == 3 else "completed"
        node, place = names[number % len(names)], (number // len(names)) % 8
        work.over(
            str(80_000 + number), state=state, on={node: (place,)}, ago=22 - (number * 0.6) % 12, lasted=0.9,
            user=("mira", "jonas", "petra")[number % 3],
        )  # fmt: skip


def _cordons(work: Work) -> None:
    now, operator = work.now, work.made.users["operator"]
    names = [name for name in work.made.nodes if name.startswith("a0")]
    ours, theirs = work.made.nodes[names[-1]], work.made.nodes[names[0]]
    central = work.clusters["central"]
    work.cordons["ours"] = Cordon.objects.create(
        node=ours, cluster=central, scheduler_node=ours.name, ours=True, mark="sensaka:1", drain=True,
        purpose="operator", reason="Fan 3 rattles; vendor comes on Thursday", requested_by=operator,
        requested_at=now - 2 * HOUR, applied_at=now - 2 * HOUR,
    )  # fmt: skip
    work.cordons["theirs"] = Cordon.objects.create(
        node=theirs, cluster=central, scheduler_node=theirs.name, ours=False, reason="kernel update, ask Reto",
        reason_by="root", requested_at=now - 5 * HOUR, applied_at=now - 5 * HOUR,
    )  # fmt: skip
    work.cordons["past"] = Cordon.objects.create(
        node=ours, cluster=central, scheduler_node=ours.name, ours=True, mark="sensaka:0", purpose="operator",
        reason="Riser swapped", requested_by=operator, requested_at=now - 50 * HOUR, applied_at=now - 50 * HOUR,
        lift_requested_at=now - 48 * HOUR, lifted_at=now - 48 * HOUR, lifted_by="us",
    )  # fmt: skip
    for node, row in ((ours, work.cordons["ours"]), (theirs, work.cordons["theirs"])):
        SchedulerNode.objects.filter(node=node).update(
            cordoned=True, reason=row.reason, reason_by=row.reason_by or "root", owner=row.mark
        )
        JournalEntry.objects.create(
            at=row.requested_at, kind=JournalKind.NODE_CORDONED, node=node, cluster=central, source="cluster",
            text=f"Node {node.name} was taken out of scheduling: {row.reason}.", actor=row.requested_by,
        )  # fmt: skip


def node_called(work: Work, which: str) -> Node:
    """The node of a cordon."""
    return work.cordons[which].node
