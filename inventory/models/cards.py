"""Cards, their slices, their models and where they have been."""

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateTimeRangeField, RangeOperators
from django.db import models
from django.db.models import Func, Q

from inventory.models.nodes import Node
from inventory.models.places import Cluster
from inventory.rules.lifecycle import CARD
from sensaka.platform.models import Record

CARD_STATES = [(state, state) for state in CARD.states]


class NextSeries(Func):
    """The next number of the sequence that cards and slices share: the key of their samples."""

    template = "nextval('inventory_series')"
    arity = 0
    output_field = models.IntegerField()


class CardModel(Record):
    """A product in the catalogue. Shipped rows come from inventory/catalogue; sites add their own."""

    slug = models.SlugField(max_length=64, unique=True)
    vendor = models.CharField(max_length=32)
    name = models.CharField(max_length=100)
    name_strings = models.JSONField(default=list, help_text="Names that drivers and BMCs report")
    pci_ids = models.JSONField(default=list, help_text="vendor:device, lower-case hex")
    memory = models.BigIntegerField(null=True, blank=True, help_text="bytes, as the device reports it")
    tdp = models.PositiveIntegerField(null=True, blank=True, help_text="W")
    slowdown_temperature = models.FloatField(null=True, blank=True, help_text="degrees C")
    nvlink_links = models.PositiveSmallIntegerField(null=True, blank=True)
    mig_profiles = models.JSONField(default=list)
    partition_modes = models.JSONField(default=list)
    sources = models.JSONField(default=dict, help_text="Where each figure comes from")
    shipped = models.BooleanField(default=False)

    class Meta:
        ordering = ["vendor", "name"]

    def __str__(self) -> str:
        return self.name


class BusyThreshold(Record):
    """From which activity (percent) a card counts as busy; the most specific row wins."""

    model = models.ForeignKey(CardModel, on_delete=models.CASCADE, related_name="+", null=True, blank=True)
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+", null=True, blank=True)
    activity = models.FloatField(default=5.0)

    class Meta:
        constraints = [models.UniqueConstraint("model", "cluster", name="busy_threshold_once", nulls_distinct=False)]


class Card(Record):
    """One accelerator. Identity: uuid, then serial, then PCI address on its node; never an index."""

    series = models.IntegerField(unique=True, db_default=NextSeries(), editable=False)
    node = models.ForeignKey(Node, on_delete=models.PROTECT, related_name="cards", null=True, blank=True)
    model = models.ForeignKey(CardModel, on_delete=models.PROTECT, related_name="cards", null=True, blank=True)
    state = models.CharField(max_length=16, default=CARD.initial, choices=CARD_STATES)
    vendor = models.CharField(max_length=32, blank=True)
    model_name = models.CharField(max_length=200, blank=True, help_text="As the device says")
    uuid = models.CharField(max_length=96, blank=True)
    serial = models.CharField(max_length=64, blank=True, db_index=True)
    pci_address = models.CharField(max_length=20, blank=True)
    pci_id = models.CharField(max_length=16, blank=True)
    part_number = models.CharField(max_length=64, blank=True)
    slot = models.CharField(max_length=64, blank=True)
    minor = models.PositiveSmallIntegerField(null=True, blank=True)
    memory_total = models.BigIntegerField(null=True, blank=True)
    mig_enabled = models.BooleanField(null=True, blank=True)
    partition_mode = models.CharField(max_length=16, blank=True)
    nvlink_active = models.PositiveSmallIntegerField(null=True, blank=True)
    pcie_generation = models.PositiveSmallIntegerField(null=True, blank=True)
    pcie_width = models.PositiveSmallIntegerField(null=True, blank=True)
    first_seen_at = models.DateTimeField()
    state_since = models.DateTimeField()
    conflict = models.CharField(max_length=200, blank=True, help_text="Set while its identity is reported twice")
    simulated = models.BooleanField(default=False)

    class Meta:
        ordering = ["node__name", "slot", "pci_address", "id"]
        constraints = [
            models.UniqueConstraint("uuid", condition=~Q(uuid=""), name="card_uuid_once"),
            models.CheckConstraint(condition=Q(state__in=list(CARD.states)), name="card_state_known"),
        ]
        indexes = [models.Index(fields=["node", "state"])]

    def __str__(self) -> str:
        return self.uuid or self.serial or f"{self.model_name} at {self.pci_address}"


class Slice(Record):
    """A MIG instance or partition of a card. A re-created one is a new slice; the old is closed."""

    series = models.IntegerField(unique=True, db_default=NextSeries(), editable=False)
    card = models.ForeignKey(Card, on_delete=models.CASCADE, related_name="slices")
    kind = models.CharField(max_length=16, default="mig")
    uuid = models.CharField(max_length=128)
    profile = models.CharField(max_length=64)
    instance_id = models.CharField(max_length=32, blank=True)
    memory_total = models.BigIntegerField(null=True, blank=True)
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["instance_id"]
        constraints = [models.UniqueConstraint("uuid", condition=Q(closed_at=None), name="open_slice_uuid_once")]

    def __str__(self) -> str:
        return f"{self.profile} {self.uuid}"


class Placement(Record):
    """Where a card has been: one row a stay on a node and slot. Two stays of one card can't overlap."""

    card = models.ForeignKey(Card, on_delete=models.CASCADE, related_name="placements")
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="placements")
    slot = models.CharField(max_length=64, blank=True)
    pci_address = models.CharField(max_length=20, blank=True)
    span = DateTimeRangeField()

    class Meta:
        ordering = ["-span"]
        constraints = [
            ExclusionConstraint(
                name="placement_one_place_at_a_time",
                expressions=[("card", RangeOperators.EQUAL), ("span", RangeOperators.OVERLAPS)],
            )
        ]
        indexes = [models.Index(fields=["node"])]


class Sighting(Record):
    """The last time one collector saw one card, and with which identity: where each card comes from."""

    card = models.ForeignKey(Card, on_delete=models.CASCADE, related_name="sightings")
    source = models.CharField(max_length=16, help_text="agent, exporter, bmc")
    collector_id = models.UUIDField()
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="+")
    seen_at = models.DateTimeField()
    identity = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint("card", "collector_id", name="sighting_once")]


class ProcessBinding(Record):
    """A process on a card and the job or pod it belongs to, as last reported.

    Exporters name pods and jobs but no process (pid 0): then `owner` tells several on one card apart.
    """

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="processes")
    card = models.ForeignKey(Card, on_delete=models.CASCADE, related_name="processes")
    slice = models.ForeignKey(Slice, on_delete=models.CASCADE, related_name="processes", null=True, blank=True)
    pid = models.PositiveIntegerField()
    owner = models.CharField(max_length=64, blank=True, help_text="With pid 0: SHA-256 of what names the job or pod")
    name = models.CharField(max_length=200, blank=True)
    user = models.CharField(max_length=100, blank=True)
    memory_used = models.BigIntegerField(null=True, blank=True)
    container_id = models.CharField(max_length=100, blank=True)
    pod_uid = models.CharField(max_length=64, blank=True)
    pod = models.CharField(max_length=253, blank=True)
    namespace = models.CharField(max_length=253, blank=True)
    slurm_job_id = models.CharField(max_length=32, blank=True)
    first_seen_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    class Meta:
        ordering = ["pid"]
        constraints = [
            models.UniqueConstraint("card", "slice", "pid", "owner", name="process_once", nulls_distinct=False)
        ]
