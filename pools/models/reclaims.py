"""Cards that are held and not used: the case, its warnings, and what was done."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from pools.models.allocations import Allocation
from sensaka.identity.models import User
from sensaka.platform.scope import ScopedRecord


class IdleState(models.TextChoices):
    """How a case stands."""

    OPEN = "open", "Idle"
    EXTENDED = "extended", "Left to its owner for a time"
    RELEASED = "released", "Released by its owner"
    RECLAIMED = "reclaimed", "Reclaimed"
    BUSY = "busy", "In use again"
    ENDED = "ended", "Ended by itself"


OPEN_IDLE = (IdleState.OPEN, IdleState.EXTENDED)


class IdleCase(ScopedRecord):
    """An allocation whose card is not used. Percent, bytes and times as measured when it was last looked at."""

    allocation = models.ForeignKey(Allocation, on_delete=models.CASCADE, related_name="idle_cases")
    since = models.DateTimeField(help_text="Idle from")
    state = models.CharField(max_length=16, choices=IdleState.choices, default=IdleState.OPEN)
    highest_activity = models.FloatField(null=True, blank=True, help_text="percent, in the period")
    coverage = models.FloatField(null=True, blank=True, help_text="percent of the period that samples cover")
    memory_held = models.BigIntegerField(null=True, blank=True, help_text="bytes resident; some: idle-held")
    first_warned_at = models.DateTimeField(null=True, blank=True)
    second_warned_at = models.DateTimeField(null=True, blank=True)
    extension_asked_at = models.DateTimeField(null=True, blank=True)
    extension_asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True, blank=True
    )
    justification = models.CharField(max_length=500, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True, blank=True
    )
    decision = models.CharField(max_length=500, blank=True, help_text="Why")
    extended_until = models.DateTimeField(null=True, blank=True)
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-since"]
        constraints = [
            models.UniqueConstraint("allocation", condition=Q(state__in=OPEN_IDLE), name="idle_case_open_once"),
            models.CheckConstraint(
                condition=Q(second_warned_at=None) | Q(first_warned_at__isnull=False), name="idle_warned_in_order"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.allocation} idle since {self.since:%Y-%m-%d %H:%M}"

    @classmethod
    def scope(cls, user: User) -> Q:
        """Of the allocations that a person sees."""
        return Q(allocation__in=Allocation.objects.filter(Allocation.scope(user)).values("pk"))


class ReclaimState(models.TextChoices):
    """How taking cards back stands."""

    ASKED = "asked", "Asked"
    RELEASING = "releasing", "Being released"
    DONE = "done", "Done"
    REFUSED = "refused", "Refused"


class Reclaim(ScopedRecord):
    """Cards of one allocation to be taken back, by whose wish and why."""

    allocation = models.ForeignKey(Allocation, on_delete=models.CASCADE, related_name="reclaims")
    case = models.ForeignKey(IdleCase, on_delete=models.SET_NULL, related_name="reclaims", null=True, blank=True)
    state = models.CharField(max_length=16, choices=ReclaimState.choices, default=ReclaimState.ASKED)
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True, blank=True
    )
    source = models.CharField(max_length=32, help_text="operator, policy, owner, budget")
    reason = models.CharField(max_length=500)
    done_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(
                "allocation",
                condition=Q(state__in=[ReclaimState.ASKED, ReclaimState.RELEASING]),
                name="reclaim_open_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.allocation}: {self.reason}"

    @classmethod
    def scope(cls, user: User) -> Q:
        """Of the allocations that a person sees."""
        return Q(allocation__in=Allocation.objects.filter(Allocation.scope(user)).values("pk"))
