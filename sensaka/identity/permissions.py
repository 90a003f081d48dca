"""Who may do what over REST: the role of the person and the scope of the token, whichever is less."""

from typing import TYPE_CHECKING

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from sensaka.identity.models import ApiToken, Scope, User

if TYPE_CHECKING:
    # rest_framework.views imports this module, through the settings, while it is being imported itself
    from rest_framework.views import APIView


def _scope_allows(request: Request) -> bool:
    if not isinstance(request.auth, ApiToken):
        return True
    return request.method in SAFE_METHODS or request.auth.scope == Scope.WRITE


class InventoryAccess(BasePermission):
    """Operators and auditors read the inventory, operators change it."""

    message = "The inventory is for operators and auditors; changes need an operator and a token with scope write."

    def has_permission(self, request: Request, view: "APIView") -> bool:
        user = request.user
        if not isinstance(user, User) or not _scope_allows(request):
            return False
        return user.sees_inventory if request.method in SAFE_METHODS else user.operates


class OperatorOnly(BasePermission):
    """Only operators, reading included."""

    message = "Only operators may do this."

    def has_permission(self, request: Request, view: "APIView") -> bool:
        return isinstance(request.user, User) and request.user.operates and _scope_allows(request)


class OwnAccount(BasePermission):
    """Whoever is signed in, for what belongs to that person alone."""

    message = "Sign in, or use a token with scope write."

    def has_permission(self, request: Request, view: "APIView") -> bool:
        return isinstance(request.user, User) and request.user.is_active and _scope_allows(request)
