"""Who is read, when, and what came of it: BMCs, exporters, agents; and how agents enrol."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from inventory.models.nodes import Node
from inventory.models.places import Cluster, Rack, Site
from inventory.observations import TlsPolicy
from sensaka.platform.fields import EncryptedTextField
from sensaka.platform.models import Record


class Credential(Record):
    """A login for BMCs, stored encrypted and never shown again."""

    name = models.CharField(max_length=100, unique=True)
    username = models.CharField(max_length=100)
    password = EncryptedTextField()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Collector(Record):
    """What every source that is read has: its rhythm and what the last read gave.

    `failures` holds the last read's partial failures as a list of {what, kind, detail}; `error_*`
    is set when the read gave nothing at all. `leased_until` keeps two workers off one source.
    """

    interval = models.PositiveSmallIntegerField(default=30, help_text="seconds")
    enabled = models.BooleanField(default=True)
    due_at = models.DateTimeField(auto_now_add=True, db_index=True)
    leased_until = models.DateTimeField(null=True, blank=True)
    attempted_at = models.DateTimeField(null=True, blank=True)
    succeeded_at = models.DateTimeField(null=True, blank=True)
    failing_since = models.DateTimeField(null=True, blank=True)
    misses = models.PositiveIntegerField(default=0, help_text="reads in a row that gave nothing")
    error_kind = models.CharField(max_length=24, blank=True)
    error_detail = models.CharField(max_length=2000, blank=True)
    failures = models.JSONField(default=list, blank=True)
    elapsed = models.FloatField(null=True, blank=True, help_text="seconds the last read took")
    requests = models.PositiveIntegerField(null=True, blank=True, help_text="requests the last read took")
    cards_seen = models.PositiveSmallIntegerField(null=True, blank=True)
    simulated = models.BooleanField(default=False)

    class Meta:
        abstract = True


class BmcProtocol(models.TextChoices):
    REDFISH = "redfish", "Redfish"
    IPMI = "ipmi", "IPMI 2.0"


class Bmc(Collector):
    """A management controller, polled by Sensaka."""

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="bmcs", null=True, blank=True)
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="+")
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    rack = models.ForeignKey(Rack, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    address = models.GenericIPAddressField()
    port = models.PositiveIntegerField(default=443)
    protocol = models.CharField(max_length=16, choices=BmcProtocol.choices)
    credential = models.ForeignKey(Credential, on_delete=models.PROTECT, related_name="bmcs")
    tls = models.CharField(
        max_length=16, choices=[(policy, policy) for policy in TlsPolicy], default=TlsPolicy.FINGERPRINT
    )
    tls_fingerprint = models.CharField(max_length=128, blank=True, help_text="SHA-256, hex")
    tls_authority = models.TextField(blank=True, help_text="PEM of the authority to trust")
    vendor = models.CharField(max_length=100, blank=True)
    product = models.CharField(max_length=200, blank=True)
    firmware = models.CharField(max_length=100, blank=True)
    discovered_at = models.DateTimeField(null=True, blank=True)
    sensors = models.JSONField(default=list, blank=True, help_text="Last sensor readings")
    links = models.JSONField(default=dict, blank=True, help_text="Resources that a poll reads, found by discovery")
    reports_cards = models.BooleanField(default=False)

    class Meta:
        ordering = ["address", "port"]
        verbose_name = "BMC"
        constraints = [models.UniqueConstraint("address", "port", name="bmc_address_once")]

    def __str__(self) -> str:
        return f"{self.protocol}://{self.address}:{self.port}"


class Exporter(Collector):
    """A Prometheus page of cards that a site already runs, scraped by Sensaka."""

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="exporters", null=True, blank=True)
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="+")
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    rack = models.ForeignKey(Rack, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    url = models.URLField(max_length=500, unique=True)
    flavour = models.CharField(max_length=32, blank=True, help_text="dcgm, amd ...; found on the first read")
    hostname = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["url"]

    def __str__(self) -> str:
        return self.url


class Agent(Collector):
    """A sensaka-agent on a node. It pushes; `interval` is the rhythm it was told."""

    node = models.OneToOneField(Node, on_delete=models.CASCADE, related_name="agent")
    token_digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the node token")
    version = models.CharField(max_length=32, blank=True)
    spooled = models.PositiveIntegerField(null=True, blank=True, help_text="records waiting on the node")
    dropped = models.BigIntegerField(default=0, help_text="records lost because the spool was full")
    revoked_at = models.DateTimeField(null=True, blank=True)
    reported_at = models.DateTimeField(null=True, blank=True, help_text="When what its newest report says was read")
    silent_since = models.DateTimeField(null=True, blank=True, help_text="Set while the journal says it is silent")

    class Meta:
        ordering = ["node__name"]

    def __str__(self) -> str:
        return f"agent on {self.node}"


class EnrolmentToken(Record):
    """A token that lets agents enrol, once by default, into a given place."""

    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    site = models.ForeignKey(Site, on_delete=models.CASCADE, related_name="+")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+", null=True, blank=True)
    rack = models.ForeignKey(Rack, on_delete=models.CASCADE, related_name="+", null=True, blank=True)
    uses_left = models.PositiveIntegerField(default=1)
    expires_at = models.DateTimeField()
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True)

    class Meta:
        ordering = ["-created_at"]


class DiscoveryState(models.TextChoices):
    RUNNING = "running", "Running"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"


class Discovery(Record):
    """A search of an address range for BMCs, with its progress and what each address answered."""

    addresses = models.CharField(max_length=500, help_text="CIDR, range or list as entered")
    ports = models.JSONField(default=list, blank=True)
    protocol = models.CharField(max_length=16, blank=True, help_text="empty: try Redfish, then IPMI")
    credential = models.ForeignKey(Credential, on_delete=models.PROTECT, related_name="+")
    tls = models.CharField(max_length=16, default=TlsPolicy.FINGERPRINT)
    tls_authority = models.TextField(blank=True)
    interval = models.PositiveSmallIntegerField(default=30)
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="+")
    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    rack = models.ForeignKey(Rack, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    state = models.CharField(max_length=16, choices=DiscoveryState.choices, default=DiscoveryState.RUNNING)
    total = models.PositiveIntegerField(default=0)
    tried = models.PositiveIntegerField(default=0)
    found = models.PositiveIntegerField(default=0)
    results = models.JSONField(default=list, blank=True, help_text="[{address, port, outcome, detail, bmc}]")
    leased_until = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True)

    class Meta:
        ordering = ["-created_at"]
        indexes = [models.Index(fields=["state"], condition=Q(state="running"), name="discovery_running")]
