"""Tenant scope, in one place: which rows of a model a person may see.

A model says with `scope` how its rows belong to people; `visible_to` applies it. Every view, form and
endpoint that tenants reach starts from `Model.objects.visible_to(user)`, so that a row that is not
somebody's own is not found, as if it did not exist.
"""

from typing import Any, Self, TypeVar

from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.db.models import Q

from sensaka.identity.models import User
from sensaka.platform.models import Record

M = TypeVar("M", bound=models.Model)


class ScopedQuerySet(models.QuerySet[M]):
    """Rows that belong to somebody."""

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """What `user` may see: everything for operators and auditors, their own for others, else nothing."""
        if not isinstance(user, User) or not user.is_active:
            return self.none()
        if user.sees_all_tenants:
            return self.all()
        scope: Any = self.model
        return self.filter(scope.scope(user))


class ScopedManager(models.Manager[M]):
    """The manager of models that tenants see a part of."""

    def get_queryset(self) -> ScopedQuerySet[M]:
        """All rows; a page or endpoint that tenants reach takes `visible_to`."""
        return ScopedQuerySet(self.model, using=self._db)

    def visible_to(self, user: User | AnonymousUser) -> ScopedQuerySet[M]:
        """What `user` may see of it."""
        return self.get_queryset().visible_to(user)


class ScopedRecord(Record):
    """A record that tenants see a part of."""

    objects = ScopedManager()

    class Meta:
        abstract = True

    @classmethod
    def scope(cls, user: User) -> Q:
        """The condition on rows that belong to `user`, who is neither operator nor auditor.

        It holds `__in` subqueries and no join, so that it neither repeats rows nor costs a query of its own.
        """
        raise NotImplementedError(f"{cls.__name__} does not say whose its rows are")
