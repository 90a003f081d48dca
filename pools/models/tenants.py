"""Tenants, their projects and members, and how work that is seen in a cluster is told to be theirs."""

from typing import Any

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q, QuerySet

from sensaka.identity.models import User
from sensaka.platform.models import Record
from sensaka.platform.scope import ScopedRecord


class Tenant(ScopedRecord):
    """A team, department or customer: what quotas are given to and statements are written for."""

    name = models.CharField(max_length=100, unique=True)
    slug = models.SlugField(max_length=40, unique=True, help_text="Names its account and namespace in clusters")
    description = models.CharField(max_length=500, blank=True)
    contact = models.EmailField(blank=True)
    cohort = models.CharField(
        max_length=64, blank=True, help_text="Tenants of one cohort lend each other what they don't use; empty: nobody"
    )
    weight = models.FloatField(
        default=1.0, validators=[MinValueValidator(0.01)], help_text="Fair share: twice the weight, twice the share"
    )
    active = models.BooleanField(default=True, help_text="Inactive tenants keep what runs and start nothing new")

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(weight__gt=0),
                name="tenant_weight_positive",
                violation_error_message="The weight is more than 0.",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @classmethod
    def scope(cls, user: User) -> Q:
        """A person's tenants, whichever of their projects they are in."""
        return Q(pk__in=memberships_of(user).values("tenant"))


class Project(ScopedRecord):
    """What work is done for, inside a tenant. Requests are made for a project."""

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="projects")
    name = models.CharField(max_length=100)
    slug = models.SlugField(max_length=40)
    description = models.CharField(max_length=500, blank=True)
    active = models.BooleanField(default=True)

    class Meta:
        ordering = ["tenant__name", "name"]
        constraints = [
            models.UniqueConstraint(
                "tenant",
                "name",
                name="project_name_in_tenant",
                violation_error_message="The tenant has a project of this name.",
            ),
            models.UniqueConstraint(
                "tenant",
                "slug",
                name="project_slug_in_tenant",
                violation_error_message="The tenant has a project of this short name.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @classmethod
    def scope(cls, user: User) -> Q:
        """All projects of tenants that a person belongs to as a whole, and single ones."""
        return belongs_to(user, tenant="tenant", project="pk")


class MemberRole(models.TextChoices):
    """What a person may do in a tenant. Operators and auditors of the installation need no membership."""

    ADMIN = "admin", "Tenant admin"
    MEMBER = "member", "Member"


class Membership(ScopedRecord):
    """A person in a tenant, or in one project of it. Without a project it holds for all of them."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="memberships")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships", null=True, blank=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    role = models.CharField(max_length=16, choices=MemberRole.choices, default=MemberRole.MEMBER)

    class Meta:
        ordering = ["tenant__name", "user__username"]
        constraints = [
            models.UniqueConstraint(
                "user",
                "tenant",
                "project",
                name="membership_once",
                violation_error_message="This person is a member already.",
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                condition=~Q(role=MemberRole.ADMIN) | Q(project=None),
                name="membership_admin_of_whole_tenant",
                violation_error_message="An admin is one of the whole tenant: leave the project empty.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.project or self.tenant}"

    @classmethod
    def scope(cls, user: User) -> Q:
        """Who else is there: of a whole tenant all of its people, of a project that project's."""
        return belongs_to(user) | Q(user=user)


def memberships_of(user: User) -> QuerySet[Membership]:
    """The memberships of a person, as a subquery."""
    return Membership.objects.filter(user=user)


def belongs_to(user: User, *, tenant: str = "tenant", project: str = "project") -> Q:
    """The condition on rows of a person's tenants and projects; `tenant` and `project` are paths from the row.

    Members of a whole tenant see what any of its projects has; members of a project see that project alone.
    """
    mine = memberships_of(user)
    return Q(**{f"{tenant}__in": mine.filter(project=None).values("tenant")}) | Q(
        **{f"{project}__in": mine.exclude(project=None).values("project")}
    )


def open_to(user: User, through: Any, name: str) -> Q:
    """The condition on rows that may be restricted to tenants by the table `through`, which calls them `name`."""
    mine = through.objects.filter(tenant__in=memberships_of(user).values("tenant"))
    return ~Q(pk__in=through.objects.values(name)) | Q(pk__in=mine.values(name))


class MappingKind(models.TextChoices):
    """By what a job seen in a cluster is told to be a tenant's."""

    LABEL = "label", "Label"
    NAMESPACE = "namespace", "Namespace"
    ACCOUNT = "account", "Account"


class MappingRule(Record):
    """Jobs of one cluster with this label, namespace or account belong to a tenant or project.

    A job that several rules fit follows the first kind in the order label, namespace, account.
    """

    cluster = models.ForeignKey("inventory.Cluster", on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=16, choices=MappingKind.choices)
    key = models.CharField(max_length=317, blank=True, help_text="The label's name; empty for other kinds")
    value = models.CharField(max_length=253)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="mapping_rules")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", null=True, blank=True)

    class Meta:
        ordering = ["cluster__name", "kind", "key", "value"]
        constraints = [
            models.UniqueConstraint(
                "cluster",
                "kind",
                "key",
                "value",
                name="mapping_rule_once",
                violation_error_message="There is a rule for this already: edit that one.",
            ),
            models.CheckConstraint(
                condition=(Q(kind=MappingKind.LABEL) & ~Q(key="")) | (~Q(kind=MappingKind.LABEL) & Q(key="")),
                name="mapping_rule_label_has_key",
                violation_error_message="A label rule needs the label's name, other rules none.",
            ),
        ]

    def __str__(self) -> str:
        named = f"{self.key}={self.value}" if self.key else self.value
        return f"{self.get_kind_display()} {named}"


class Mode(models.TextChoices):
    """Who decides what starts in a cluster."""

    OBSERVED = "observed", "Observed: its own scheduler decides, Sensaka records"
    MANAGED = "managed", "Managed: Sensaka's queue decides and launches"


class ClusterMode(Record):
    """Who decides in a cluster, and where launched work runs. Without a row a cluster is observed."""

    cluster = models.OneToOneField("inventory.Cluster", on_delete=models.CASCADE, related_name="+")
    mode = models.CharField(max_length=16, choices=Mode.choices, default=Mode.OBSERVED)
    working_directory = models.CharField(max_length=500, default="/tmp", help_text="Of launched scripts")  # noqa: S108
    output = models.CharField(max_length=500, default="/dev/null", help_text="As sbatch's --output; %j is the job")

    def __str__(self) -> str:
        return self.mode
