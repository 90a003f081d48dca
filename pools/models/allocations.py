"""The ledger: which card, or which part of it, is promised to whom from when to when."""

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateTimeRangeField, IntegerRangeField, RangeOperators
from django.db import models
from django.db.models import Deferrable, Q

from pools.models.pools import Pool
from pools.models.requests import Request
from pools.models.specs import PriorityClass, Spec
from pools.models.tenants import Project, Tenant, belongs_to
from sensaka.identity.models import User
from sensaka.platform.scope import ScopedRecord


class AllocationSource(models.TextChoices):
    """Who decided."""

    OBSERVED = "observed", "Observed in its cluster"
    MANAGED = "managed", "Placed by Sensaka"


class Allocation(ScopedRecord):
    """One unit: a card, or a share of one, held in `span`. One row a card, so a unit of 8 cards has 8.

    `share` is in thousandths of the card, a whole card being [0, 1000). `span` is open while it is held;
    `ends_at` is when its time limit ends it. Without a tenant it is *unassigned*: held, but no rule says
    by whom. `suspended`: its job stood still meanwhile and kept the card; schedulers' accounts leave that
    time out. Two rows of one card whose shares and spans overlap can't both be stored.
    """

    card = models.ForeignKey("inventory.Card", on_delete=models.PROTECT, related_name="+")
    node = models.ForeignKey("inventory.Node", on_delete=models.PROTECT, related_name="+", help_text="At the start")
    slice = models.ForeignKey("inventory.Slice", on_delete=models.SET_NULL, related_name="+", null=True, blank=True)
    share = IntegerRangeField(default=(0, 1000))
    span = DateTimeRangeField()
    ends_at = models.DateTimeField(null=True, blank=True)
    request = models.ForeignKey(Request, on_delete=models.PROTECT, related_name="allocations", null=True, blank=True)
    job = models.ForeignKey("inventory.Job", on_delete=models.SET_NULL, related_name="+", null=True, blank=True)
    attempt = models.PositiveSmallIntegerField(default=0)
    unit = models.PositiveIntegerField(default=0, help_text="Number of the unit in its request")
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    spec = models.ForeignKey(Spec, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    priority = models.ForeignKey(PriorityClass, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    source = models.CharField(max_length=16, choices=AllocationSource.choices)
    suspended = models.BooleanField(default=False)
    outcome = models.CharField(max_length=500, blank=True, help_text="How it ended")

    class Meta:
        ordering = ["-span", "id"]
        constraints = [
            ExclusionConstraint(
                name="allocation_held_once",
                expressions=[
                    ("card", RangeOperators.EQUAL),
                    ("share", RangeOperators.OVERLAPS),
                    ("span", RangeOperators.OVERLAPS),
                ],
                # checked after each statement, so that two holders can change places in one
                deferrable=Deferrable.IMMEDIATE,
            ),
            models.CheckConstraint(
                condition=Q(share__contained_by=(0, 1000), share__isempty=False), name="allocation_share_of_a_card"
            ),
            models.CheckConstraint(
                condition=Q(span__lower_inf=False, span__isempty=False), name="allocation_span_begins"
            ),
            models.CheckConstraint(
                condition=Q(source=AllocationSource.OBSERVED) | Q(request__isnull=False),
                name="allocation_managed_has_request",
            ),
        ]
        indexes = [
            models.Index(fields=["card"], condition=Q(span__upper_inf=True), name="allocation_open"),
            models.Index(fields=["tenant", "project"]),
        ]

    def __str__(self) -> str:
        return f"{self.card} for {self.project or self.tenant or 'nobody known'}"

    @classmethod
    def scope(cls, user: User) -> Q:
        """Of a person's tenants and projects; what is unassigned is nobody's."""
        return belongs_to(user)
