"""The user and the API token. Roles are coarse; what a tenant sees is decided by the base queryset."""

from django.contrib.auth.models import AbstractUser
from django.db import models
from knox.models import AbstractAuthToken

from sensaka.platform.fields import UuidV7


class Role(models.TextChoices):
    """What a person may do with the whole installation; tenant roles come with memberships."""

    OPERATOR = "operator", "Operator"
    AUDITOR = "auditor", "Auditor"
    MEMBER = "member", "Member"


class User(AbstractUser):  # type: ignore[django-manager-missing] # knox ships no types
    """A person. `time_zone` decides in which zone pages show times; empty follows the browser."""

    id = models.UUIDField(primary_key=True, db_default=UuidV7(), editable=False)
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.MEMBER)
    time_zone = models.CharField(max_length=64, blank=True)
    language = models.CharField(max_length=16, blank=True)

    @property
    def sees_inventory(self) -> bool:
        """Operators and auditors see the inventory; tenants see cards through their allocations."""
        return self.role in (Role.OPERATOR, Role.AUDITOR)

    @property
    def sees_all_tenants(self) -> bool:
        """Operators and auditors see what every tenant has; others see their own tenants by membership."""
        return self.role in (Role.OPERATOR, Role.AUDITOR)

    @property
    def operates(self) -> bool:
        """Whether this person may change the inventory."""
        return self.role == Role.OPERATOR


class Scope(models.TextChoices):
    """What an API token may do, never more than its owner."""

    READ = "read", "Read"
    WRITE = "write", "Read and change"


class ApiToken(AbstractAuthToken):  # type: ignore[misc] # knox ships no types
    """An API token: stored hashed, with a name, a scope and an expiry."""

    name = models.CharField(max_length=100)
    scope = models.CharField(max_length=16, choices=Scope.choices, default=Scope.READ)
    last_used_at = models.DateTimeField(null=True, blank=True)
    reference = models.UUIDField(unique=True, db_default=UuidV7(), editable=False)
