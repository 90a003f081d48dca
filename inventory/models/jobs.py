"""What schedulers run: one row a run of a job or pod, and which cards it holds."""

from datetime import datetime

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone

from inventory.models.cards import Card, Slice
from inventory.models.nodes import Node
from inventory.models.places import Cluster
from inventory.rules import jobs as rules
from inventory.rules.jobs import HOLDING, CardKind, JobState
from sensaka.platform.models import Record


class Job(Record):
    """One run of a job or pod. Its identity is `key` in its cluster; the scheduler's own id may come again.

    `open`: neither ended nor lost. A lost run vanished without a record of its end; it ended somewhere
    between `seen_at` and `lost_at`. `seen_at` is the last reading that changed the row, or that still
    listed a lost one; while open the connection's `jobs_read_at` says when it was last seen.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="jobs")
    key = models.CharField(max_length=255, help_text="Of this run, never used again in its cluster")
    job_id = models.CharField(max_length=400, help_text="The scheduler's own; a pod's is namespace/name")
    workload = models.CharField(max_length=400, blank=True, help_text="What groups runs: an owner such as a Job")
    name = models.CharField(max_length=500, blank=True)
    user = models.CharField(max_length=200, blank=True)
    account = models.CharField(max_length=255, blank=True, help_text="Account, or the namespace of a pod")
    qos = models.CharField(max_length=200, blank=True)
    queue = models.CharField(max_length=255, blank=True)
    state = models.CharField(
        max_length=16, default=JobState.UNKNOWN, choices=[(s.value, s.value.replace("_", " ")) for s in JobState]
    )
    raw_state = models.CharField(max_length=200, blank=True)
    reason = models.CharField(max_length=2000, blank=True)
    exit_code = models.IntegerField(null=True, blank=True)
    exit_signal = models.IntegerField(null=True, blank=True)
    array_id = models.CharField(max_length=400, blank=True)
    array_task = models.BigIntegerField(null=True, blank=True)
    array_tasks = models.CharField(max_length=500, blank=True, help_text="The tasks that a waiting entry stands for")
    group_id = models.CharField(max_length=400, blank=True, help_text="Heterogeneous job or pod group")
    group_offset = models.IntegerField(null=True, blank=True)
    submitted_at = models.DateTimeField(help_text="Where the scheduler doesn't say, when it was first seen")
    eligible_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    suspended = models.PositiveIntegerField(null=True, blank=True, help_text="seconds; null: not told")
    time_limit = models.BigIntegerField(null=True, blank=True, help_text="seconds; null: none")
    node_names = ArrayField(models.CharField(max_length=255), default=list, blank=True, help_text="As scheduled")
    nodes: "models.ManyToManyField[Node, JobNode]" = models.ManyToManyField(
        Node, through="JobNode", related_name="jobs"
    )
    cards = models.PositiveIntegerField(default=0, help_text="Cards allocated, as the scheduler counts")
    cards_by_type = models.JSONField(default=dict, blank=True)
    cards_requested = models.PositiveIntegerField(default=0)
    shares = models.PositiveIntegerField(default=0, help_text="Shards of shared cards")
    cards_known = models.BooleanField(
        null=True, blank=True, help_text="Whether all cards are told; null: it never held any"
    )
    cards_reason = models.CharField(max_length=500, blank=True, help_text="Why its cards are unknown")
    priority = models.BigIntegerField(null=True, blank=True)
    held = models.BooleanField(default=False)
    restarts = models.PositiveIntegerField(default=0)
    comment = models.CharField(max_length=2000, blank=True)
    reservation = models.CharField(max_length=255, blank=True)
    cancelled_by = models.CharField(max_length=200, blank=True)
    steps = models.JSONField(default=list, blank=True, help_text="From the accounting")
    final_gpu_seconds = models.BigIntegerField(null=True, blank=True, help_text="Of a run that is over")
    open = models.BooleanField(default=True)
    seen_at = models.DateTimeField()
    missing_since = models.DateTimeField(null=True, blank=True, help_text="No longer listed, its end not yet known")
    accounted_at = models.DateTimeField(null=True, blank=True, help_text="When the accounting told its end")
    lost_at = models.DateTimeField(null=True, blank=True, help_text="Vanished without a record of its end")
    live_digest = models.CharField(max_length=32, blank=True, help_text="Of the last live reading: same, nothing to do")
    run_digest = models.CharField(max_length=32, blank=True, help_text="Of the last reading of the accounting")
    simulated = models.BooleanField(default=False)

    class Meta:
        ordering = ["-submitted_at", "-id"]
        constraints = [models.UniqueConstraint("cluster", "key", name="job_run_once")]
        indexes = [
            models.Index(fields=["-submitted_at", "-id"], name="job_newest"),
            models.Index(fields=["cluster", "-submitted_at", "-id"], name="job_newest_in_cluster"),
            models.Index(fields=["cluster"], condition=Q(open=True), name="job_open"),
            models.Index(fields=["cluster", "ended_at"], name="job_ended"),
            models.Index(fields=["account", "-submitted_at"], name="job_account"),
            models.Index(fields=["user", "-submitted_at"], name="job_user"),
            models.Index(fields=["cluster", "job_id"], name="job_scheduler_id"),
            models.Index(fields=["updated_at", "id"], name="job_changed"),
            models.Index(fields=["comment"], condition=Q(comment__startswith="sensaka:"), name="job_mark"),
        ]

    def __str__(self) -> str:
        return self.job_id

    @property
    def holds(self) -> bool:
        """Whether it occupies its nodes now."""
        return self.open and self.state in HOLDING

    def gpu_seconds(self, now: datetime | None = None) -> int | None:
        """Seconds of cards held so far, or in all; of a lost run as far as it was seen. None before a start.

        None also for a run that has shares only: what a share is worth the scheduler doesn't say.
        """
        if not self.open:
            return self.final_gpu_seconds
        if self.shares and not self.cards:
            return None
        until = self.ended_at or now or timezone.now()
        return rules.gpu_seconds(cards=self.cards, started_at=self.started_at, until=until, suspended=self.suspended)


class JobNode(Record):
    """A run on one node of ours, with or without cards."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="places")
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="job_places")

    class Meta:
        constraints = [models.UniqueConstraint("job", "node", name="job_node_once")]


class CardSource(models.TextChoices):
    """Who told that a run holds a card."""

    SCHEDULER = "scheduler", "Scheduler"
    AGENT = "agent", "Agent"
    POD_RESOURCES = "pod_resources", "Kubelet's pod resources"


class JobCard(Record):
    """One card, slice or shared card that a run holds or held; card and slice are null when not known.

    `index` is what the scheduler said: the minor number, or the place in the node's list of MIG instances.
    """

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="held_cards")
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="job_cards")
    card = models.ForeignKey(Card, on_delete=models.CASCADE, related_name="job_cards", null=True, blank=True)
    slice = models.ForeignKey(Slice, on_delete=models.CASCADE, related_name="job_cards", null=True, blank=True)
    kind = models.CharField(
        max_length=16, choices=[(kind.value, kind.value) for kind in CardKind], default=CardKind.CARD
    )
    type = models.CharField(max_length=200, blank=True, help_text="As the scheduler calls it")
    index = models.PositiveSmallIntegerField(null=True, blank=True)
    shares = models.PositiveIntegerField(null=True, blank=True)
    source = models.CharField(max_length=16, choices=CardSource.choices, default=CardSource.SCHEDULER)

    class Meta:
        ordering = ["node__name", "kind", "index", "id"]
        constraints = [
            models.UniqueConstraint(
                "job", "card", "slice", condition=Q(card__isnull=False), name="job_card_once", nulls_distinct=False
            )
        ]
