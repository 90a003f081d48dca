"""Where things stand: sites, clusters, racks."""

from django.db import models

from sensaka.platform.models import Record


class SiteKind(models.TextChoices):
    CENTRAL = "central", "Central"
    REGIONAL = "regional", "Regional"
    EDGE = "edge", "Edge"


class Site(Record):
    """A data centre or machine room with its own time zone."""

    name = models.CharField(max_length=100, unique=True)
    kind = models.CharField(max_length=16, choices=SiteKind.choices, default=SiteKind.CENTRAL)
    time_zone = models.CharField(max_length=64, default="UTC")
    simulated = models.BooleanField(default=False)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Cluster(Record):
    """Nodes that are run together. `scheduler` says by what, and its connection how that is reached."""

    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="clusters")
    name = models.CharField(max_length=100)
    scheduler = models.CharField(max_length=16, blank=True)

    class Meta:
        ordering = ["site__name", "name"]
        constraints = [models.UniqueConstraint("site", "name", name="cluster_name_in_site")]

    def __str__(self) -> str:
        return self.name


class Rack(Record):
    """A rack with its height in units and the power it is built for."""

    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="racks")
    name = models.CharField(max_length=100)
    height = models.PositiveSmallIntegerField(default=42, help_text="Rack units")
    design_power = models.PositiveIntegerField(null=True, blank=True, help_text="W")

    class Meta:
        ordering = ["site__name", "name"]
        constraints = [models.UniqueConstraint("site", "name", name="rack_name_in_site")]

    def __str__(self) -> str:
        return self.name
