"""Cards that are held and not used: the case, its warnings, what was done, and what is spared."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from pools.models.allocations import Allocation
from pools.models.requests import Request
from pools.models.specs import Spec
from pools.models.stops import exactly_one
from pools.models.tenants import Project, belongs_to
from sensaka.identity.models import User
from sensaka.platform.scope import ScopedRecord


class IdleState(models.TextChoices):
    """How a case stands."""

    OPEN = "open", "Idle"
    EXTENDED = "extended", "Left to its owner for a time"
    RELEASED = "released", "Released by its owner"
    RECLAIMED = "reclaimed", "Reclaimed"
    BUSY = "busy", "In use again"
    SPARED = "spared", "Spared by a rule"
    ENDED = "ended", "Ended by itself"


OPEN_IDLE = (IdleState.OPEN, IdleState.EXTENDED)


class IdleCase(ScopedRecord):
    """Work none of whose `cards` is used. Percent, bytes and times as measured when it was last looked at.

    `allocation` is the first of what the work holds and stands for all of it: a gang is idle, and goes, as a whole.
    """

    allocation = models.ForeignKey(Allocation, on_delete=models.CASCADE, related_name="idle_cases")
    cards = models.PositiveIntegerField(default=1, help_text="cards and shares that the work holds")
    since = models.DateTimeField(help_text="Idle from")
    state = models.CharField(max_length=16, choices=IdleState.choices, default=IdleState.OPEN)
    highest_activity = models.FloatField(null=True, blank=True, help_text="percent, in the period")
    coverage = models.FloatField(null=True, blank=True, help_text="percent of the period that samples cover")
    memory_held = models.BigIntegerField(null=True, blank=True, help_text="bytes resident; some: idle-held")
    processes = models.PositiveIntegerField(default=0, help_text="seen on its cards")
    first_warned_at = models.DateTimeField(null=True, blank=True)
    second_warned_at = models.DateTimeField(null=True, blank=True)
    extension_asked_at = models.DateTimeField(null=True, blank=True)
    extension_asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True, blank=True
    )
    extension_seconds = models.PositiveIntegerField(null=True, blank=True, help_text="asked for")
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

    @property
    def open(self) -> bool:
        """Whether it goes on."""
        return self.state in OPEN_IDLE

    @property
    def held(self) -> bool:
        """Idle-held: memory is resident, so the cards are neither used nor free."""
        return bool(self.memory_held)

    @property
    def warnings(self) -> int:
        """How often its owner was warned, 0 to 2."""
        return (self.first_warned_at is not None) + (self.second_warned_at is not None)

    @property
    def extension_waits(self) -> bool:
        """Whether its owner asked for more time and nobody has decided."""
        return self.extension_asked_at is not None and self.decided_at is None

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


OPEN_RECLAIM = (ReclaimState.ASKED, ReclaimState.RELEASING)


class Reclaim(ScopedRecord):
    """What the work of one allocation holds, to be taken back: by whose wish and why.

    *Asked* waits for an operator; *releasing*: its cluster was told to end the work, which is not over yet.
    """

    allocation = models.ForeignKey(Allocation, on_delete=models.CASCADE, related_name="reclaims")
    case = models.ForeignKey(IdleCase, on_delete=models.SET_NULL, related_name="reclaims", null=True, blank=True)
    state = models.CharField(max_length=16, choices=ReclaimState.choices, default=ReclaimState.ASKED)
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True, blank=True
    )
    source = models.CharField(max_length=32, help_text="operator, policy, owner, budget")
    reason = models.CharField(max_length=500)
    answer = models.CharField(max_length=500, blank=True, help_text="Why it was refused, or could not be done")
    done_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(
                "allocation",
                condition=Q(state__in=OPEN_RECLAIM),
                name="reclaim_open_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.allocation}: {self.reason}"

    @classmethod
    def scope(cls, user: User) -> Q:
        """Of the allocations that a person sees."""
        return Q(allocation__in=Allocation.objects.filter(Allocation.scope(user)).values("pk"))


SPARED_TARGETS = ("project", "request", "spec")


class IdleExemption(ScopedRecord):
    """Idle cards of a project, a request or a spec are left alone until `until`, or until it is lifted."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", null=True, blank=True)
    request = models.ForeignKey(Request, on_delete=models.CASCADE, related_name="+", null=True, blank=True)
    spec = models.ForeignKey(Spec, on_delete=models.CASCADE, related_name="+", null=True, blank=True)
    reason = models.CharField(max_length=500)
    until = models.DateTimeField()
    placed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True, blank=True
    )
    lifted_at = models.DateTimeField(null=True, blank=True)
    lifted_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True, blank=True
    )

    class Meta:
        ordering = ["-until"]
        constraints = [
            models.CheckConstraint(
                condition=exactly_one(SPARED_TARGETS),
                name="idle_exemption_of_one_thing",
                violation_error_message="Name exactly one project, request or spec.",
            )
        ]
        indexes = [models.Index(fields=["until"], condition=Q(lifted_at=None), name="idle_exemption_open")]

    def __str__(self) -> str:
        return f"{self.target}: {self.reason}"

    @property
    def target(self) -> Project | Request | Spec | None:
        """What is spared."""
        return self.project or self.request or self.spec

    @classmethod
    def scope(cls, user: User) -> Q:
        """Of a person's projects and requests, and of specs that they may ask for."""
        return (
            belongs_to(user, tenant="project__tenant")
            | Q(request__in=Request.objects.filter(Request.scope(user)).values("pk"))
            | Q(spec__in=Spec.objects.filter(Spec.scope(user)).values("pk"))
        )
