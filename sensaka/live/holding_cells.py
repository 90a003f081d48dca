"""The topic `holdings`: a version of the whole ledger, for the pages that show who holds what."""

from django.db.models import Count, Max, Q

from pools.models import Allocation, Extension, ExtensionState
from sensaka.live.cells import Cells, version


def cells() -> Cells:
    """Versions that change when something is held or let go, and when a wish for more time comes or is decided."""
    held = Allocation.objects.aggregate(
        open=Count("pk", filter=Q(span__upper_inf=True)), last=Max("updated_at"), newest=Max("created_at")
    )
    asked = Extension.objects.aggregate(
        open=Count("pk", filter=Q(state=ExtensionState.ASKED)), last=Max("updated_at")
    )  # fmt: skip
    return {
        "holdings.version": version(held["open"], held["last"], held["newest"]),
        "extensions.version": version(asked["open"], asked["last"]),
    }
