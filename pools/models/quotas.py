"""Quotas: what a tenant or project may use, and what was recorded of tokens and storage."""

from django.db import models
from django.db.models import Q

from pools.models.tenants import Project, Tenant, belongs_to, memberships_of
from sensaka.identity.models import User
from sensaka.platform.models import Record
from sensaka.platform.scope import ScopedRecord


class Resource(models.TextChoices):
    """What can be limited, each in its own unit."""

    HOURS = "hours", "GPU-hours in a period"
    CARDS = "cards", "Cards at once"
    MEMORY = "memory", "GPU memory at once"
    TOKENS = "tokens", "Tokens in a period"
    STORAGE = "storage", "Storage"


UNITS = {
    Resource.HOURS: "GPU-hours",
    Resource.CARDS: "cards",
    Resource.MEMORY: "bytes",
    Resource.TOKENS: "tokens",
    Resource.STORAGE: "bytes",
}


class Period(models.TextChoices):
    """Over which calendar span, in the quota's time zone, GPU-hours and tokens are counted."""

    DAY = "day", "Day"
    WEEK = "week", "Week"
    MONTH = "month", "Month"
    QUARTER = "quarter", "Quarter"
    YEAR = "year", "Year"


class OverQuota(models.TextChoices):
    """What happens to running work when a period's amount is used up."""

    WAIT = "wait", "What runs goes on, what is new waits"
    STOP = "stop", "What runs is stopped as well"


def _of_holder(user: User) -> Q:
    """A tenant's own quota is seen by everybody in it; a project's by whoever sees the project."""
    whole = Q(project=None) & Q(tenant__in=memberships_of(user).values("tenant"))
    return whole | belongs_to(user)


class Quota(ScopedRecord):
    """The one quota record of a tenant, or of a project inside it. Its limits stand in lines."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="quotas")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="quotas", null=True, blank=True)
    period = models.CharField(max_length=16, choices=Period.choices, default=Period.MONTH)
    time_zone = models.CharField(max_length=64, default="UTC", help_text="IANA name; where the period begins")
    over_quota = models.CharField(max_length=16, choices=OverQuota.choices, default=OverQuota.WAIT)

    class Meta:
        ordering = ["tenant__name", "project__name"]
        constraints = [
            models.UniqueConstraint(
                "tenant",
                "project",
                name="quota_once",
                violation_error_message="There is a quota for this tenant or project already: edit that one.",
                nulls_distinct=False,
            )
        ]

    def __str__(self) -> str:
        return f"Quota of {self.project or self.tenant}"

    @classmethod
    def scope(cls, user: User) -> Q:
        """Of a person's tenants and projects."""
        return _of_holder(user)


class QuotaLimit(Record):
    """One limit of a quota, in the unit of its resource (`UNITS`).

    `nominal` is its own. `borrowing` is how much more may be taken of what others of the cohort don't use
    (0: nothing, null: all there is), `lending` how much of its own others may take (null: all of it).
    """

    quota = models.ForeignKey(Quota, on_delete=models.CASCADE, related_name="limits")
    resource = models.CharField(max_length=16, choices=Resource.choices)
    model = models.ForeignKey("inventory.CardModel", on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    nominal = models.DecimalField(max_digits=22, decimal_places=3)
    borrowing = models.DecimalField(max_digits=22, decimal_places=3, null=True, blank=True, default=0)
    lending = models.DecimalField(max_digits=22, decimal_places=3, null=True, blank=True)

    class Meta:
        ordering = ["resource", "model__name"]
        constraints = [
            models.UniqueConstraint(
                "quota",
                "resource",
                "model",
                name="quota_limit_once",
                violation_error_message="This limit stands there already: edit that one.",
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                condition=Q(nominal__gte=0)
                & (Q(borrowing=None) | Q(borrowing__gte=0))
                & (Q(lending=None) | Q(lending__gte=0)),
                name="quota_limit_not_negative",
                violation_error_message="Amounts are not negative.",
            ),
            models.CheckConstraint(
                condition=Q(model=None) | Q(resource__in=[Resource.CARDS, Resource.HOURS]),
                name="quota_limit_model_of_cards",
                violation_error_message="Only cards and GPU-hours are limited by model.",
            ),
        ]

    def __str__(self) -> str:
        of = f" of {self.model}" if self.model is not None else ""
        return f"{self.get_resource_display().lower()}{of}: {self.nominal}"


class UsageKind(models.TextChoices):
    """What is recorded from outside: a flow (tokens) or a level (bytes stored)."""

    TOKENS = "tokens", "Tokens"
    STORAGE = "storage", "Storage"


class UsageRecord(ScopedRecord):
    """Tokens that were used up to `at`, or bytes that were stored at `at`.

    `subject` names the inference model or the volume. Tokens add up; of storage the newest record of each
    subject counts. A record that is sent again (same source and key) is stored once.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+", null=True, blank=True)
    kind = models.CharField(max_length=16, choices=UsageKind.choices)
    subject = models.CharField(max_length=200, blank=True)
    amount = models.BigIntegerField(help_text="tokens, or bytes")
    at = models.DateTimeField()
    source = models.CharField(max_length=64)
    key = models.CharField(max_length=200, help_text="Identifies the record at its source")

    class Meta:
        ordering = ["-at", "-id"]
        constraints = [
            models.UniqueConstraint("source", "key", name="usage_record_once"),
            models.CheckConstraint(
                condition=Q(amount__gte=0),
                name="usage_amount_not_negative",
                violation_error_message="Amounts are not negative.",
            ),
        ]
        indexes = [models.Index(fields=["tenant", "project", "kind", "-at"])]

    def __str__(self) -> str:
        return f"{self.amount} {self.kind}"

    @classmethod
    def scope(cls, user: User) -> Q:
        """Of a person's tenants and projects."""
        return belongs_to(user)
