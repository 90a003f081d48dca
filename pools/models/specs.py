"""Specs: the standard sizes that tenants ask for, and the classes of urgency that they ask with."""

from django.db import models
from django.db.models import Q

from pools.models.pools import Pool, SharingMode
from pools.models.tenants import Tenant, open_to
from sensaka.identity.models import User
from sensaka.platform.scope import ScopedRecord


class Near(models.TextChoices):
    """How close to each other the units of a request must be; each level includes those before it."""

    ISLAND = "island", "One NVLink island"
    NODE = "node", "One node"
    RACK = "rack", "One rack"
    LEAF = "leaf", "One network leaf"
    CLUSTER = "cluster", "One cluster"


class Spec(ScopedRecord):
    """A size that is asked for by name: one unit is `cards` cards of one node, or one share of one card.

    `card_models`: any of them, all cards of a request of the same one. `shares_per_card` is into how many
    parts a time-sliced or MPS card is divided. CPU cores and memory (bytes) are the host's, per unit.
    The price is what is declared per unit-hour; accounts are kept by metering.
    """

    name = models.CharField(max_length=100, unique=True)
    description = models.CharField(max_length=500, blank=True)
    card_models = models.ManyToManyField("inventory.CardModel", related_name="+")
    mode = models.CharField(max_length=16, choices=SharingMode.choices, default=SharingMode.WHOLE)
    profile = models.CharField(max_length=64, blank=True, help_text="MIG profile, for example 3g.40gb")
    shares_per_card = models.PositiveSmallIntegerField(default=1)
    cards = models.PositiveSmallIntegerField(default=1, help_text="per unit, on one node")
    cpu_cores = models.FloatField(null=True, blank=True)
    memory = models.BigIntegerField(null=True, blank=True, help_text="bytes of the node's memory")
    near = models.CharField(max_length=16, choices=Near.choices, default=Near.CLUSTER)
    price = models.DecimalField(max_digits=12, decimal_places=4, null=True, blank=True, help_text="per unit-hour")
    currency = models.CharField(max_length=3, blank=True, help_text="ISO 4217, for example EUR")
    pools = models.ManyToManyField(Pool, related_name="specs", blank=True)
    active = models.BooleanField(default=True, help_text="Offered; requests made before stay as they are")

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=(Q(mode=SharingMode.MIG) & ~Q(profile="")) | (~Q(mode=SharingMode.MIG) & Q(profile="")),
                name="spec_mig_has_profile",
                violation_error_message="A MIG spec names its profile, other specs none.",
            ),
            models.CheckConstraint(
                condition=Q(mode__in=[SharingMode.TIME_SLICE, SharingMode.MPS], shares_per_card__gte=2)
                | Q(mode__in=[SharingMode.WHOLE, SharingMode.MIG], shares_per_card=1),
                name="spec_shares_divide",
                violation_error_message="Time slices and MPS divide a card into 2 parts or more, others into 1.",
            ),
            models.CheckConstraint(
                condition=Q(cards__gte=1) & (Q(mode=SharingMode.WHOLE) | Q(cards=1)),
                name="spec_share_is_of_one_card",
                violation_error_message="A unit is at least one card, and a share is of exactly one.",
            ),
            models.CheckConstraint(
                condition=Q(price=None, currency="") | (Q(price__gte=0) & ~Q(currency="")),
                name="spec_price_has_currency",
                violation_error_message="A price needs its currency, and is not negative.",
            ),
            models.CheckConstraint(
                condition=Q(memory=None) | Q(memory__gt=0),
                name="spec_memory_positive",
                violation_error_message="Memory is more than 0, or left out.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def price_words(self) -> str:
        """As "2.90 EUR" or "0.0375 EUR"; empty without a price."""
        if self.price is None:
            return ""
        exact = f"{self.price.normalize():f}"
        return f"{exact if len(exact.partition('.')[2]) > 2 else f'{self.price:.2f}'} {self.currency}"

    @classmethod
    def scope(cls, user: User) -> Q:
        """What is offered on a pool that the person may use."""
        open_pools = Pool.objects.filter(Pool.scope(user)).values("pk")
        return Q(pk__in=Spec.pools.through.objects.filter(pool__in=open_pools).values("spec"))


class PriorityClass(ScopedRecord):
    """How urgent work is, at what price, and whether it may be interrupted. Times are seconds.

    `tenants` restricts who may ask with it; without any it is open to all.
    """

    name = models.CharField(max_length=64, unique=True)
    description = models.CharField(max_length=500, blank=True)
    value = models.IntegerField(default=0, help_text="Higher goes first")
    price_factor = models.DecimalField(max_digits=6, decimal_places=3, default=1)
    preemptible = models.BooleanField(default=False, help_text="Work of a higher class may take its cards")
    may_preempt = models.BooleanField(default=True, help_text="May take the cards of lower preemptible classes")
    minimum_run = models.PositiveIntegerField(default=0, help_text="seconds that a run is never interrupted in")
    grace = models.PositiveIntegerField(default=120, help_text="seconds from the signal to the end")
    tenants = models.ManyToManyField(Tenant, related_name="priority_classes", blank=True)
    default = models.BooleanField(default=False)

    class Meta:
        ordering = ["-value", "name"]
        verbose_name_plural = "priority classes"
        constraints = [
            models.UniqueConstraint(
                "default",
                condition=Q(default=True),
                name="one_default_priority_class",
                violation_error_message="Another class is the default: take that mark away first.",
            ),
            models.CheckConstraint(
                condition=Q(price_factor__gte=0),
                name="priority_price_factor_not_negative",
                violation_error_message="The price factor is not negative.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @classmethod
    def scope(cls, user: User) -> Q:
        """Classes that are open to all, and those of a person's tenants."""
        return open_to(user, PriorityClass.tenants.through, "priorityclass")
