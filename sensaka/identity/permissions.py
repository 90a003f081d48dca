"""Who may do what over REST."""

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from sensaka.identity.models import User


class InventoryAccess(BasePermission):
    """Operators and auditors read the inventory, operators change it."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        user = request.user
        if not isinstance(user, User):
            return False
        return user.sees_inventory if request.method in SAFE_METHODS else user.operates
