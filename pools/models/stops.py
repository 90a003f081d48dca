"""What keeps work from starting: holds, and the times in which nodes are needed for something else."""

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from pools.models.pools import Pool
from pools.models.requests import Request
from pools.models.tenants import Project, Tenant, belongs_to, memberships_of
from sensaka.identity.models import User
from sensaka.platform.models import Record
from sensaka.platform.scope import ScopedRecord

HOLD_TARGETS = ("tenant", "project", "request", "pool")
PLACE_TARGETS = ("site", "cluster", "rack", "node")


def exactly_one(names: tuple[str, ...]) -> Q:
    """The condition that exactly one of some nullable columns is set."""
    found = Q()
    for chosen in names:
        found |= Q(**{f"{name}__isnull": name != chosen for name in names})
    return found


class Hold(ScopedRecord):
    """Nothing new of a tenant, project, request or pool starts until it ends or is lifted. What runs goes on."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="holds", null=True, blank=True)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="holds", null=True, blank=True)
    request = models.ForeignKey(Request, on_delete=models.CASCADE, related_name="holds", null=True, blank=True)
    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="holds", null=True, blank=True)
    reason = models.CharField(max_length=500)
    source = models.CharField(max_length=32, help_text="operator, owner, budget")
    placed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True, blank=True
    )
    until = models.DateTimeField(null=True, blank=True)
    lifted_at = models.DateTimeField(null=True, blank=True)
    lifted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True, blank=True
    )

    class Meta:
        ordering = ["-created_at"]
        constraints = [models.CheckConstraint(condition=exactly_one(HOLD_TARGETS), name="hold_of_one_thing")]
        indexes = [models.Index(fields=["until"], condition=Q(lifted_at=None), name="hold_open")]

    def __str__(self) -> str:
        return self.reason

    @classmethod
    def scope(cls, user: User) -> Q:
        """Those that stop a person's work: of their tenants, projects, requests, and of pools that they may use."""
        return (
            Q(tenant__in=memberships_of(user).values("tenant"))
            | belongs_to(user, tenant="project__tenant")
            | Q(request__in=Request.objects.filter(Request.scope(user)).values("pk"))
            | Q(pool__in=Pool.objects.filter(Pool.scope(user)).values("pk"))
        )


class MaintenanceWindow(Record):
    """Nodes of one place that must be empty from `starts_at` to `ends_at`; the queue plans around it."""

    name = models.CharField(max_length=100)
    site = models.ForeignKey("inventory.Site", on_delete=models.CASCADE, related_name="+", null=True, blank=True)
    cluster = models.ForeignKey("inventory.Cluster", on_delete=models.CASCADE, related_name="+", null=True, blank=True)
    rack = models.ForeignKey("inventory.Rack", on_delete=models.CASCADE, related_name="+", null=True, blank=True)
    node = models.ForeignKey("inventory.Node", on_delete=models.CASCADE, related_name="+", null=True, blank=True)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    reason = models.CharField(max_length=500, blank=True)
    cancelled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["starts_at"]
        constraints = [
            models.CheckConstraint(
                condition=exactly_one(PLACE_TARGETS),
                name="maintenance_of_one_place",
                violation_error_message="Name exactly one site, cluster, rack or node.",
            ),
            models.CheckConstraint(
                condition=Q(ends_at__gt=F("starts_at")),
                name="maintenance_ends_after_start",
                violation_error_message="The end lies after the start.",
            ),
        ]
        indexes = [models.Index(fields=["ends_at"], condition=Q(cancelled_at=None), name="maintenance_ahead")]

    def __str__(self) -> str:
        return self.name

    @property
    def place(self) -> Any:
        """The site, cluster, rack or node that it is about."""
        return self.node or self.rack or self.cluster or self.site

    @property
    def place_words(self) -> str:
        """As "rack A01, Central"."""
        kind = next(name for name in PLACE_TARGETS if getattr(self, f"{name}_id") is not None)
        place = self.place
        return f"{kind} {place.name}" if kind == "site" else f"{kind} {place.name}, {place.site.name}"
