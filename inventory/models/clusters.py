"""Schedulers as they were last seen: connections, their nodes, queues and reservations, and who took nodes out."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from inventory.models.collectors import Collector
from inventory.models.nodes import Node
from inventory.models.places import Cluster
from sensaka.platform.fields import EncryptedTextField
from sensaka.platform.models import Record


class Scheduler(models.TextChoices):
    """What runs a cluster. `Cluster.scheduler` holds the same."""

    SLURM = "slurm", "Slurm"
    KUBERNETES = "kubernetes", "Kubernetes"


class ClusterConnection(Collector):
    """How the scheduler of a cluster is reached, and what it last said of itself.

    Token, kubeconfig and key are stored encrypted, never shown again and never logged. `nodes_read_at`
    and `jobs_read_at` date the facts: they are the times of the last complete readings, and stay while
    the scheduler is out of reach.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="connection")
    scheduler = models.CharField(max_length=16, choices=Scheduler.choices)
    address = models.CharField(max_length=500, blank=True, help_text="slurmrestd or API server: http(s):// or unix:/")
    username = models.CharField(max_length=100, blank=True)
    token = EncryptedTextField(blank=True)
    jwt_key = EncryptedTextField(blank=True, help_text="Slurm's HS256 key, base64: with it tokens are made here")
    kubeconfig = EncryptedTextField(blank=True)
    in_cluster = models.BooleanField(default=False, help_text="Use the service account of our own pod")
    tls_authority = models.TextField(blank=True, help_text="PEM of the authority; empty: those of the system")
    commands = models.BooleanField(default=False, help_text="Slurm's commands on this host may be used")
    slurm_conf = models.CharField(max_length=500, blank=True, help_text="Path; empty: the default")
    version = models.CharField(max_length=200, blank=True)
    interface = models.CharField(max_length=200, blank=True)
    tested = models.BooleanField(default=True, help_text="Whether this interface is one that we test")
    reason = models.CharField(max_length=2000, blank=True, help_text="What is wrong or limited, in words")
    capabilities = models.JSONField(default=list, blank=True, help_text="[{capability, available, via, reason}]")
    scheduler_name = models.CharField(max_length=200, blank=True, help_text="What the scheduler calls the cluster")
    enforces = models.JSONField(default=list, blank=True, help_text="Limits of tenants that it can enforce")
    token_expires_at = models.DateTimeField(null=True, blank=True)
    described_at = models.DateTimeField(null=True, blank=True)
    nodes_read_at = models.DateTimeField(null=True, blank=True)
    jobs_read_at = models.DateTimeField(null=True, blank=True)
    runs_read_at = models.DateTimeField(null=True, blank=True)
    follow_cursor = models.CharField(max_length=2000, blank=True, help_text="Where following the jobs goes on")
    runs_watermark = models.DateTimeField(null=True, blank=True, help_text="Ask for runs that ended from here on")

    class Meta:
        ordering = ["cluster__site__name", "cluster__name"]

    def __str__(self) -> str:
        return f"{self.scheduler} of {self.cluster}"


class SchedulerNode(Record):
    """A node as its scheduler sees it; `node` is the one of ours that it is.

    A renamed node is another row: the old one is gone, both point to the same node, so that jobs of
    either name are found. `seen_at` is the last reading that changed the row.
    """

    connection = models.ForeignKey(ClusterConnection, on_delete=models.CASCADE, related_name="nodes")
    node = models.ForeignKey(Node, on_delete=models.SET_NULL, related_name="scheduled_as", null=True, blank=True)
    name = models.CharField(max_length=255)
    hostname = models.CharField(max_length=255, blank=True)
    address = models.CharField(max_length=255, blank=True)
    machine_id = models.CharField(max_length=64, blank=True)
    system_uuid = models.CharField(max_length=64, blank=True)
    load = models.CharField(max_length=16, default="unknown", help_text="idle, mixed, allocated, down, unknown")
    raw_state = models.CharField(max_length=200, blank=True)
    cordoned = models.BooleanField(default=False)
    responding = models.BooleanField(default=True)
    reason = models.CharField(max_length=2000, blank=True)
    reason_by = models.CharField(max_length=200, blank=True)
    reason_at = models.DateTimeField(null=True, blank=True)
    owner = models.CharField(max_length=200, blank=True, help_text="The id in our mark; empty: not ours")
    queues = ArrayField(models.CharField(max_length=255), default=list, blank=True)
    features = ArrayField(models.CharField(max_length=255), default=list, blank=True)
    accelerators = models.JSONField(default=list, blank=True, help_text="[{kind, type, total, used, used_indices}]")
    cpus = models.PositiveIntegerField(null=True, blank=True)
    memory = models.BigIntegerField(null=True, blank=True, help_text="bytes")
    version = models.CharField(max_length=200, blank=True)
    booted_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True, blank=True, help_text="A complete reading no longer lists it")

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint("connection", "name", name="scheduler_node_once")]

    def __str__(self) -> str:
        return self.name


class SchedulerQueue(Record):
    """A partition of a scheduler, as last read."""

    connection = models.ForeignKey(ClusterConnection, on_delete=models.CASCADE, related_name="queues")
    name = models.CharField(max_length=255)
    nodes = ArrayField(models.CharField(max_length=255), default=list, blank=True)
    up = models.BooleanField(default=True)
    default = models.BooleanField(null=True, blank=True)
    time_limit = models.BigIntegerField(null=True, blank=True, help_text="seconds; null: none")
    priority = models.BigIntegerField(null=True, blank=True)
    accounts = ArrayField(models.CharField(max_length=255), default=list, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint("connection", "name", name="scheduler_queue_once")]

    def __str__(self) -> str:
        return self.name


class Reservation(Record):
    """Nodes that a scheduler keeps for somebody for a time, as last read."""

    connection = models.ForeignKey(ClusterConnection, on_delete=models.CASCADE, related_name="reservations")
    name = models.CharField(max_length=255)
    nodes = ArrayField(models.CharField(max_length=255), default=list, blank=True)
    starts_at = models.DateTimeField(null=True, blank=True)
    ends_at = models.DateTimeField(null=True, blank=True)
    users = ArrayField(models.CharField(max_length=255), default=list, blank=True)
    accounts = ArrayField(models.CharField(max_length=255), default=list, blank=True)
    flags = ArrayField(models.CharField(max_length=255), default=list, blank=True)
    cards = models.PositiveIntegerField(null=True, blank=True, help_text="null: whole nodes")
    maintenance = models.BooleanField(default=False)

    class Meta:
        ordering = ["starts_at", "name"]
        constraints = [models.UniqueConstraint("connection", "name", name="reservation_once")]

    def __str__(self) -> str:
        return self.name


class CordonPurpose(models.TextChoices):
    """What a cordon of ours is for."""

    OPERATOR = "operator", "Operator"
    HEALTH = "health", "Health"
    MAINTENANCE = "maintenance", "Maintenance"
    PROVISIONING = "provisioning", "Provisioning"
    POWER = "power", "Sleep and wake"


class LiftedBy(models.TextChoices):
    """How a cordon ended."""

    US = "us", "Lifted by Sensaka"
    HAND = "hand", "Lifted by hand in the scheduler"
    REPLACED = "replaced", "Its reason was replaced in the scheduler"
    GONE = "gone", "The scheduler no longer has the node"


class Cordon(Record):
    """A node taken out of scheduling, by us or by somebody else; open until `lifted_at`.

    Ours is written first (`requested_at`), then set in the scheduler (`applied_at`); lifting likewise
    (`lift_requested_at`, `lifted_at`), so that a crash between is carried on by a task. Its id, as
    `mark`, stands in the scheduler's reason. Somebody else's is only shown and never lifted. While any
    is open, the node's cards are cordoned and not available.
    """

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="cordons")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="cordons", null=True, blank=True)
    scheduler_node = models.CharField(max_length=255, blank=True, help_text="The node's name in the scheduler")
    ours = models.BooleanField()
    mark = models.CharField(max_length=64, blank=True, help_text="The owner id in the scheduler's reason")
    drain = models.BooleanField(default=False, help_text="What runs is to finish or be evicted; the node then rests")
    purpose = models.CharField(max_length=16, choices=CordonPurpose.choices, blank=True)
    reason = models.CharField(max_length=1000, blank=True)
    reason_by = models.CharField(max_length=200, blank=True, help_text="Who, as the scheduler says")
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True, blank=True
    )
    requested_at = models.DateTimeField(help_text="Of somebody else's: when it was seen")
    applied_at = models.DateTimeField(null=True, blank=True)
    drained_at = models.DateTimeField(null=True, blank=True, help_text="Nothing was running any more")
    lift_requested_at = models.DateTimeField(null=True, blank=True)
    lift_requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True, blank=True
    )
    lifted_at = models.DateTimeField(null=True, blank=True)
    lifted_by = models.CharField(max_length=16, choices=LiftedBy.choices, blank=True)
    attempts = models.PositiveIntegerField(default=0, help_text="acts tried since the last that went through")
    attempted_at = models.DateTimeField(null=True, blank=True)
    last_error = models.CharField(max_length=2000, blank=True)
    leased_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-requested_at", "-id"]
        constraints = [
            models.UniqueConstraint("node", condition=Q(ours=True, lifted_at=None), name="open_cordon_of_ours_once"),
            models.UniqueConstraint("node", condition=Q(ours=False, lifted_at=None), name="open_foreign_cordon_once"),
            models.UniqueConstraint("mark", condition=~Q(mark=""), name="cordon_mark_once"),
        ]
        indexes = [
            models.Index(fields=["-requested_at", "-id"]),
            models.Index(fields=["cluster"], condition=Q(lifted_at=None), name="cordon_open"),
        ]

    def __str__(self) -> str:
        return f"{'drain' if self.drain else 'cordon'} of {self.node}"

    @property
    def state(self) -> str:
        """requested, applied, lifting or lifted."""
        if self.lifted_at is not None:
            return "lifted"
        if self.lift_requested_at is not None:
            return "lifting"
        return "applied" if self.applied_at is not None else "requested"
