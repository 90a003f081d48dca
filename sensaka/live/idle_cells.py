"""The topic `idle`: when the list of idle work, as a person sees it, is another one."""

from django.db.models import Count, Max

from pools.models import IdleCase, IdleExemption, Reclaim
from sensaka.identity.models import User
from sensaka.live.cells import Cells, version


def cells(user: User) -> Cells:
    """A version that changes when a case, a reclaim or an exemption does. Three queries."""
    seen = []
    for model in (IdleCase, Reclaim, IdleExemption):
        rows = model.objects.visible_to(user).aggregate(number=Count("pk"), last=Max("updated_at"))
        seen.append((rows["number"], rows["last"]))
    return {"idle.version": version(*seen)}
