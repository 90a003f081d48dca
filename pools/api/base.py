"""Bases of the endpoints of pools: scope from the base queryset, writing by services, roles by permission."""

from typing import TYPE_CHECKING, Any, cast

from django.db.models import QuerySet
from rest_framework import serializers, viewsets
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from sensaka.identity.models import User
from sensaka.identity.permissions import OwnAccount
from sensaka.platform.rest.viewsets import EditViewSet, ReadViewSet, acting_user
from sensaka.platform.scope import ScopedQuerySet

if TYPE_CHECKING:
    from rest_framework.views import APIView

OPTIONAL = {"required": False, "allow_null": True}


class SignedIn(OwnAccount):
    """Whoever is signed in; the queryset decides what there is to see, the services what may be done."""


class OperatorsChange(OwnAccount):
    """Whoever is signed in reads what is theirs; operators change it."""

    message = "Only operators change this, with a token of scope write."

    def has_permission(self, request: Request, view: "APIView") -> bool:
        if not super().has_permission(request, view):
            return False
        return request.method in SAFE_METHODS or acting_user(request).operates


class _Scoped(viewsets.GenericViewSet[Any]):
    """Rows of others are not found, as if they did not exist."""

    def get_queryset(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset()
        if getattr(self, "swagger_fake_view", False):
            return rows.none()
        return rows.visible_to(self.request.user) if isinstance(rows, ScopedQuerySet) else rows


class ScopedReadViewSet(_Scoped, ReadViewSet):
    """List and read what is one's own."""

    permission_classes = [SignedIn]
    lookup_value_converter = "uuid"


class ScopedEditViewSet(_Scoped, EditViewSet):
    """Everything, on what is one's own. `save` and `remove` are the services that write."""

    permission_classes = [OperatorsChange]
    lookup_value_converter = "uuid"

    def save(self, row: Any, values: dict[str, Any], actor: User) -> Any:
        """The service that makes or changes a row."""
        raise NotImplementedError

    def remove(self, row: Any, actor: User) -> None:
        """The service that deletes a row."""
        raise NotImplementedError

    def perform_create(self, serializer: serializers.BaseSerializer[Any]) -> None:
        row = self.save(None, dict(serializer.validated_data), acting_user(self.request))
        serializer.instance = self.get_queryset().get(pk=row.pk)

    def perform_update(self, serializer: serializers.BaseSerializer[Any]) -> None:
        row = self.save(serializer.instance, dict(serializer.validated_data), acting_user(self.request))
        serializer.instance = self.get_queryset().get(pk=row.pk)

    def perform_destroy(self, instance: Any) -> None:
        self.remove(instance, acting_user(self.request))


def viewer(serializer: serializers.BaseSerializer[Any]) -> User | None:
    """Who asks; None while the document is made."""
    request = serializer.context.get("request")
    user = getattr(request, "user", None)
    return user if isinstance(user, User) else None


class VisibleField(serializers.PrimaryKeyRelatedField[Any]):
    """The id of a row that whoever asks may see; others' ids are as unknown as made-up ones."""

    def get_queryset(self) -> QuerySet[Any]:
        """The rows that may be named."""
        rows: Any = self.__dict__["queryset"]
        user = getattr(self.context.get("request"), "user", None)
        found: QuerySet[Any] = rows.none() if user is None else rows.visible_to(user)
        return found


class OverseersOnly:
    """Fields that only operators and auditors are shown; for others they are null. Mixed into serializers."""

    overseers_only: tuple[str, ...] = ()

    def to_representation(self, instance: Any) -> dict[str, Any]:
        shown: dict[str, Any] = super().to_representation(instance)  # type: ignore[misc]
        user = viewer(cast(Any, self))
        if user is None or not user.sees_all_tenants:
            shown |= dict.fromkeys(self.overseers_only)
        return shown
