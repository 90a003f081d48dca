"""Requests and their life: what was asked for, how it stands, why it waits, and everything that happened to it."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from pools.models.pools import Pool
from pools.models.specs import Near, PriorityClass, Spec
from pools.models.tenants import Project, belongs_to
from pools.rules.lifecycle import ENDED, REQUEST
from sensaka.identity.models import User
from sensaka.platform.scope import ScopedRecord

REQUEST_STATES = [(state, state.replace("_", " ")) for state in REQUEST.states]
_ENDED = sorted(ENDED)


class Launch(models.TextChoices):
    """What is started on the cards."""

    SCRIPT = "script", "A batch script"
    IMAGE = "image", "A container image"
    CARDS = "cards", "Just the cards"


class EndAsked(models.TextChoices):
    """What ending the work of a request will mean: the event that follows once it is over."""

    CANCEL = "cancel", "Cancelled"
    COMPLETE = "complete", "Released by its owner"


class Request(ScopedRecord):
    """A wish for `count` units of a spec in a pool, all or nothing, for at most `time_limit` seconds.

    `reasons` are [{code, args}] as the last pass of admission found them; the sentences are made from them.
    `mark` is our id in the launched job's comment, by which it is found again after a crash; `attempt`
    counts launches. `waited_since` is when it last came to the queue. `boost` is an operator's own order.
    """

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="requests")
    spec = models.ForeignKey(Spec, on_delete=models.PROTECT, related_name="requests")
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, related_name="requests")
    priority = models.ForeignKey(PriorityClass, on_delete=models.PROTECT, related_name="requests")
    submitter = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True)
    name = models.CharField(max_length=100, blank=True)
    count = models.PositiveIntegerField(default=1, help_text="units of the spec, all or nothing")
    near = models.CharField(max_length=16, choices=Near.choices, blank=True, help_text="empty: as the spec says")

    launch = models.CharField(max_length=16, choices=Launch.choices)
    script = models.TextField(blank=True)
    image = models.CharField(max_length=500, blank=True)
    command = ArrayField(models.CharField(max_length=4000), default=list, blank=True)
    environment = models.JSONField(default=dict, blank=True)
    model = models.CharField(max_length=200, blank=True, help_text="Cached model that it loads, preferred by placement")

    time_limit = models.PositiveIntegerField(help_text="seconds")
    not_before = models.DateTimeField(null=True, blank=True)
    held = models.BooleanField(default=False)
    boost = models.IntegerField(default=0)

    state = models.CharField(max_length=16, default=REQUEST.initial, choices=REQUEST_STATES)
    state_since = models.DateTimeField()
    submitted_at = models.DateTimeField()
    waited_since = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    ends_at = models.DateTimeField(null=True, blank=True, help_text="By its time limit and granted extensions")
    end_asked_at = models.DateTimeField(null=True, blank=True, help_text="Its work is to be ended")
    end_asked = models.CharField(max_length=16, choices=EndAsked.choices, blank=True)
    signalled_at = models.DateTimeField(null=True, blank=True, help_text="Told to leave for somebody else")
    checkpoint_at = models.DateTimeField(null=True, blank=True)

    reasons = models.JSONField(default=list, blank=True)
    position = models.PositiveIntegerField(null=True, blank=True)
    expected_start = models.DateTimeField(null=True, blank=True)
    explanation = models.CharField(max_length=500, blank=True, help_text="Why it was placed where it was")
    considered_at = models.DateTimeField(null=True, blank=True, help_text="By the last pass of admission")

    attempt = models.PositiveSmallIntegerField(default=0)
    preempted = models.PositiveSmallIntegerField(default=0, help_text="times")
    mark = models.CharField(max_length=64, blank=True)
    cluster = models.ForeignKey(
        "inventory.Cluster", on_delete=models.SET_NULL, related_name="+", null=True, blank=True,
        help_text="Where it was placed last",
    )  # fmt: skip
    job_reference = models.CharField(max_length=400, blank=True, help_text="What its scheduler calls the launched job")
    launch_tried_at = models.DateTimeField(null=True, blank=True, help_text="It may have been submitted since")
    leased_until = models.DateTimeField(null=True, blank=True, help_text="Somebody talks to its cluster until then")
    leaves_at = models.DateTimeField(null=True, blank=True, help_text="End of the grace of a preemption")
    told_at = models.DateTimeField(null=True, blank=True, help_text="The signal to leave was delivered")
    outcome = models.CharField(max_length=500, blank=True, help_text="How it ended")
    idempotency_key = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["-submitted_at", "-id"]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=list(REQUEST.states)), name="request_state_known"),
            models.CheckConstraint(condition=Q(count__gte=1), name="request_count_positive"),
            models.CheckConstraint(condition=Q(time_limit__gte=1), name="request_time_limit_positive"),
            models.CheckConstraint(
                condition=Q(state__in=_ENDED, ended_at__isnull=False) | (~Q(state__in=_ENDED) & Q(ended_at=None)),
                name="request_ended_when_ended",
            ),
            models.CheckConstraint(
                condition=(Q(launch=Launch.SCRIPT) & ~Q(script=""))
                | (Q(launch=Launch.IMAGE) & ~Q(image=""))
                | Q(launch=Launch.CARDS, script="", image=""),
                name="request_launches_something",
                violation_error_message="Give the script or the image that is to be started.",
            ),
            models.UniqueConstraint("mark", condition=~Q(mark=""), name="request_mark_once"),
            models.UniqueConstraint(
                "submitter", "idempotency_key", condition=~Q(idempotency_key=""), name="request_key_once"
            ),
        ]
        indexes = [
            models.Index(fields=["pool", "waited_since"], condition=Q(state="queued"), name="request_queued"),
            models.Index(fields=["state"], condition=~Q(state__in=_ENDED), name="request_open"),
            models.Index(fields=["project", "-submitted_at"]),
        ]

    def __str__(self) -> str:
        return self.name or f"{self.count} x {self.spec}"

    @property
    def preemptible(self) -> bool:
        """Whether work of a higher class may take its cards."""
        return self.priority.preemptible

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state in ENDED

    @classmethod
    def scope(cls, user: User) -> Q:
        """Of a person's tenants and projects."""
        return belongs_to(user, tenant="project__tenant")


class RequestEvent(ScopedRecord):
    """One thing that happened to a request: a change of state, or an act that left the state as it was."""

    request = models.ForeignKey(Request, on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField()
    event = models.CharField(max_length=32)
    source = models.CharField(max_length=16, blank=True, help_text="State before; empty for the first")
    target = models.CharField(max_length=16)
    attempt = models.PositiveSmallIntegerField(default=0)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True)
    cause = models.CharField(max_length=500, help_text="One sentence")
    detail = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["at", "id"]
        indexes = [models.Index(fields=["request", "at"])]

    def __str__(self) -> str:
        return self.cause

    @classmethod
    def scope(cls, user: User) -> Q:
        """Of the requests that a person sees."""
        return Q(request__in=Request.objects.filter(Request.scope(user)).values("pk"))


class ExtensionState(models.TextChoices):
    """How a wish for more time stands."""

    ASKED = "asked", "Asked"
    GRANTED = "granted", "Granted"
    REFUSED = "refused", "Refused"


class Extension(ScopedRecord):
    """More time for a request, asked with a reason by its owner and decided by an operator or tenant admin."""

    request = models.ForeignKey(Request, on_delete=models.CASCADE, related_name="extensions")
    seconds = models.PositiveIntegerField()
    justification = models.CharField(max_length=500)
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True)
    state = models.CharField(max_length=16, choices=ExtensionState.choices, default=ExtensionState.ASKED)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True, blank=True
    )
    decided_at = models.DateTimeField(null=True, blank=True)
    decision = models.CharField(max_length=500, blank=True, help_text="Why")

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(
                condition=Q(seconds__gte=60),
                name="extension_of_a_minute",
                violation_error_message="An extension is at least 60 seconds.",
            ),
            models.UniqueConstraint(
                "request",
                condition=Q(state=ExtensionState.ASKED),
                name="extension_asked_one_at_a_time",
                violation_error_message="An extension is asked already: wait for its decision.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.seconds} s for {self.request}"

    @classmethod
    def scope(cls, user: User) -> Q:
        """Of the requests that a person sees."""
        return Q(request__in=Request.objects.filter(Request.scope(user)).values("pk"))
