"""Bases of the REST views: scope in one place, who may act, idempotent creation."""

from typing import Any

from rest_framework import mixins, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from sensaka.identity.models import User
from sensaka.platform.rest.idempotency import once


def acting_user(request: Request) -> User:
    """The signed-in person; permissions have refused everybody else before."""
    assert isinstance(request.user, User)
    return request.user


class ReadViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Any]):
    """List and read."""


class IdempotentCreateMixin(mixins.CreateModelMixin):
    """POST honours `Idempotency-Key`: the same key and body give the first answer again."""

    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return once(request, lambda: super(IdempotentCreateMixin, self).create(request, *args, **kwargs))


class EditViewSet(
    IdempotentCreateMixin,
    mixins.UpdateModelMixin,
    mixins.DestroyModelMixin,
    ReadViewSet,
):
    """Everything; PUT is left out, PATCH changes what it names."""

    http_method_names = ["get", "post", "patch", "delete", "head", "options"]
