"""Nodes, their firmware and the journal that tells their life."""

from django.conf import settings
from django.contrib.postgres.indexes import BrinIndex
from django.db import models

from inventory.models.places import Cluster, Rack, Site
from inventory.rules.lifecycle import NODE
from sensaka.platform.models import Record

NODE_STATES = [(state, state) for state in NODE.states]


class Node(Record):
    """A server. Found again by machine id, system serial or UUID, never by name alone."""

    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="nodes")
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="nodes", null=True, blank=True)
    rack = models.ForeignKey(Rack, on_delete=models.PROTECT, related_name="nodes", null=True, blank=True)
    rack_position = models.PositiveSmallIntegerField(null=True, blank=True, help_text="Lowest unit used")
    name = models.CharField(max_length=200)
    hostname = models.CharField(max_length=200, blank=True, help_text="What its operating system calls itself")
    state = models.CharField(max_length=24, default=NODE.initial, choices=NODE_STATES)
    machine_id = models.CharField(max_length=64, blank=True, db_index=True)
    system_serial = models.CharField(max_length=100, blank=True, db_index=True)
    system_uuid = models.CharField(max_length=64, blank=True, db_index=True)
    manufacturer = models.CharField(max_length=100, blank=True)
    product = models.CharField(max_length=200, blank=True)
    boot_id = models.CharField(max_length=64, blank=True)
    driver_version = models.CharField(max_length=64, blank=True)
    runtime_version = models.CharField(max_length=64, blank=True)
    power_state = models.CharField(max_length=16, default="unknown")
    power = models.FloatField(null=True, blank=True, help_text="W, of the whole node, from its BMC")
    inlet_temperature = models.FloatField(null=True, blank=True, help_text="degrees C")
    read_at = models.DateTimeField(null=True, blank=True, help_text="Last in-band reading")
    labels = models.JSONField(default=dict, blank=True)
    simulated = models.BooleanField(default=False)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint("site", "name", name="node_name_in_site"),
            models.CheckConstraint(condition=models.Q(state__in=list(NODE.states)), name="node_state_known"),
        ]

    def __str__(self) -> str:
        return self.name


class FirmwareComponent(Record):
    """One firmware or driver version of a node or of one of its cards, as last read."""

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="firmware")
    card = models.ForeignKey("inventory.Card", on_delete=models.CASCADE, related_name="firmware", null=True, blank=True)
    component = models.CharField(max_length=200)
    version = models.CharField(max_length=200)
    source = models.CharField(max_length=16)
    read_at = models.DateTimeField()

    class Meta:
        ordering = ["component"]
        constraints = [
            models.UniqueConstraint("node", "card", "component", name="firmware_component_once", nulls_distinct=False)
        ]


class JournalKind(models.TextChoices):
    """What can happen to a thing. The text of an entry is made from `kind` and `detail`."""

    NODE_ENROLLED = "node_enrolled", "Node enrolled"
    NODE_STATE = "node_state", "Node changed state"
    NODE_RENAMED = "node_renamed", "Node renamed"
    NODE_REBOOTED = "node_rebooted", "Node rebooted"
    NODE_POWER = "node_power", "Power state changed"
    CARD_APPEARED = "card_appeared", "Card appeared"
    CARD_VANISHED = "card_vanished", "Card vanished"
    CARD_RETURNED = "card_returned", "Card returned"
    CARD_MOVED = "card_moved", "Card moved"
    CARD_SWAPPED = "card_swapped", "Card swapped"
    CARD_FAILED = "card_failed", "Card stopped answering"
    CARD_RECOVERED = "card_recovered", "Card answers again"
    CARD_DUPLICATE = "card_duplicate", "Card identity reported twice"
    CARD_IDENTIFIED = "card_identified", "Card identity completed"
    SLICES_CHANGED = "slices_changed", "Slices changed"
    FIRMWARE_CHANGED = "firmware_changed", "Firmware changed"
    COLLECTOR_FAILED = "collector_failed", "Collector stopped answering"
    COLLECTOR_RECOVERED = "collector_recovered", "Collector answers again"
    NODE_CORDONED = "node_cordoned", "Node taken out of scheduling"
    NODE_UNCORDONED = "node_uncordoned", "Node returned to scheduling"
    NODE_DRAINED = "node_drained", "Node drained"
    CLUSTER_LOST = "cluster_lost", "Cluster out of reach"
    CLUSTER_RECOVERED = "cluster_recovered", "Cluster answers again"
    JOB_ACT = "job_act", "Job acted on"
    CARDS_IDLE = "cards_idle", "Cards held and not used"
    SETTINGS_CHANGED = "settings_changed", "Settings changed"
    NOTE = "note", "Note"


class JournalEntry(Record):
    """One fact of the life of a node or card. Written in the same transaction as the change."""

    at = models.DateTimeField(help_text="When it happened, by the reading that showed it")
    kind = models.CharField(max_length=24, choices=JournalKind.choices)
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="journal", null=True, blank=True)
    card = models.ForeignKey("inventory.Card", on_delete=models.CASCADE, related_name="journal", null=True, blank=True)
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="journal", null=True, blank=True)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True, blank=True
    )
    source = models.CharField(max_length=16, blank=True, help_text="agent, exporter, bmc, cluster, user")
    text = models.CharField(max_length=500)
    detail = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["-at", "-id"]
        indexes = [
            models.Index(fields=["node", "-at"]),
            models.Index(fields=["card", "-at"]),
            models.Index(fields=["cluster", "-at"], condition=models.Q(cluster__isnull=False), name="journal_cluster"),
            models.Index(fields=["-at", "-id"]),
            BrinIndex(fields=["created_at"]),
        ]
