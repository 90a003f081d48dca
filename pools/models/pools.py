"""Pools and which cards are theirs."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from pools.models.tenants import Tenant, open_to
from sensaka.identity.models import User
from sensaka.platform.models import Record
from sensaka.platform.scope import ScopedRecord


class SharingMode(models.TextChoices):
    """How a card is used: by one holder or divided in one of three ways, never both at once."""

    WHOLE = "whole", "Whole cards"
    MIG = "mig", "MIG profile"
    TIME_SLICE = "time_slice", "Time slice"
    MPS = "mps", "MPS share"


def only_whole() -> list[str]:
    """The default of `Pool.sharing`: cards are not divided."""
    return [SharingMode.WHOLE.value]


class IdlePolicy(models.TextChoices):
    """What happens to cards that are held and not used."""

    OFF = "off", "Nothing"
    WARN = "warn", "Warn the owner twice; an operator decides"
    RECLAIM = "reclaim", "Warn the owner twice, then reclaim"


class Pool(ScopedRecord):
    """Cards that are offered together. A card is in at most one pool: where several take it, the lowest rank.

    `tenants` restricts who may use it; without any it is open to all. `sharing` are the ways in which an
    empty card may be used. Times are seconds.
    """

    name = models.CharField(max_length=100, unique=True)
    description = models.CharField(max_length=500, blank=True)
    rank = models.PositiveSmallIntegerField(default=100, help_text="Where several pools take a card, the lowest has it")
    tenants = models.ManyToManyField(Tenant, related_name="pools", blank=True)
    accepting = models.BooleanField(default=True, help_text="Takes new requests")
    sharing = ArrayField(models.CharField(max_length=16, choices=SharingMode.choices), default=only_whole)
    longest_run = models.PositiveIntegerField(null=True, blank=True, help_text="Longest time limit, seconds")
    idle_policy = models.CharField(max_length=16, choices=IdlePolicy.choices, default=IdlePolicy.WARN)
    idle_after = models.PositiveIntegerField(default=7200, help_text="seconds below the busy threshold")
    idle_grace = models.PositiveIntegerField(default=1800, help_text="seconds after the start that never count")
    idle_warning_gap = models.PositiveIntegerField(default=1800, help_text="seconds from each warning to the next step")
    idle_coverage = models.FloatField(default=90.0, help_text="percent of the period that samples must cover")

    class Meta:
        ordering = ["rank", "name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(idle_coverage__gte=50) & Q(idle_coverage__lte=100),
                name="pool_idle_coverage_percent",
                violation_error_message="The coverage is 50 to 100 percent.",
            ),
            models.CheckConstraint(
                condition=Q(idle_after__gte=60),
                name="pool_idle_after_a_minute",
                violation_error_message="The idle period is at least 60 seconds.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @classmethod
    def scope(cls, user: User) -> Q:
        """Pools that are open to all, and those of a person's tenants."""
        return open_to(user, Pool.tenants.through, "pool")


class PoolRule(Record):
    """Takes every card that meets all of its conditions, of which there is at least one.

    `labels` must all stand on the card's node with these values.
    """

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="rules")
    model = models.ForeignKey("inventory.CardModel", on_delete=models.CASCADE, related_name="+", null=True, blank=True)
    cluster = models.ForeignKey("inventory.Cluster", on_delete=models.CASCADE, related_name="+", null=True, blank=True)
    labels = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                "pool",
                "model",
                "cluster",
                "labels",
                name="pool_rule_once",
                violation_error_message="The pool has this rule already.",
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                condition=Q(model__isnull=False) | Q(cluster__isnull=False) | ~Q(labels={}),
                name="pool_rule_has_condition",
                violation_error_message="Name a model, a cluster or a label: a rule without any takes nothing.",
            ),
        ]

    def __str__(self) -> str:
        named = [str(part) for part in (self.model, self.cluster) if part is not None]
        named += [f"{key}={value}" for key, value in sorted(self.labels.items())]
        return ", ".join(named)


class PoolMember(Record):
    """A card or a node that is taken in or left out by hand. Leaving out beats taking in, both beat rules."""

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="members")
    card = models.ForeignKey("inventory.Card", on_delete=models.CASCADE, related_name="+", null=True, blank=True)
    node = models.ForeignKey("inventory.Node", on_delete=models.CASCADE, related_name="+", null=True, blank=True)
    included = models.BooleanField(default=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                "pool",
                "card",
                name="pool_member_card_once",
                violation_error_message="The pool names this card already.",
            ),
            models.UniqueConstraint(
                "pool",
                "node",
                name="pool_member_node_once",
                violation_error_message="The pool names this node already.",
            ),
            models.CheckConstraint(
                condition=Q(card=None, node__isnull=False) | Q(card__isnull=False, node=None),
                name="pool_member_card_or_node",
                violation_error_message="Name a card or a node, not both.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.card or self.node} {'in' if self.included else 'out of'} {self.pool}"
