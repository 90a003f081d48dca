"""Who may open a page: the one place where the pages' roles are decided."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render

from sensaka.identity.models import User

View = Callable[..., HttpResponseBase]
_READING = frozenset({"GET", "HEAD", "OPTIONS"})


def person(request: HttpRequest) -> User:
    """The signed-in person; LoginRequiredMiddleware has sent everybody else to the sign-in page."""
    if not isinstance(request.user, User):
        raise PermissionDenied("Sign in first.")
    return request.user


def inventory_page(view: View) -> View:
    """Operators and auditors read, operators act. A member gets a page that says where their pages are."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        user = person(request)
        if not user.sees_inventory:
            return render(request, "identity/member.html", status=403)
        if request.method not in _READING and not user.operates:
            raise PermissionDenied("Only operators change the inventory.")
        return view(request, *args, **kwargs)

    return guarded


def operator_page(view: View) -> View:
    """Pages that are of use to operators only: forms that change something."""

    @wraps(view)
    @inventory_page
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not person(request).operates:
            raise PermissionDenied("Only operators change the inventory.")
        return view(request, *args, **kwargs)

    return guarded
