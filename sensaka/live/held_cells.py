"""What runs on a node or card and whether it was taken out: versions for the parts of their pages."""

from uuid import UUID

from django.db.models import Exists, Max, OuterRef, Q

from inventory.models import Cordon, Job, JobCard, JobNode
from sensaka.live.cells import Cell, Cells, version


def cordon_cell(out: bool) -> Cell:
    """The mark beside a node that takes no new work; empty for one that does."""
    return Cell("Cordoned", "warn", hint="It takes no new work. Its page says by whose wish.") if out else Cell("")


def held_versions(*, node: UUID | None, card: UUID | None = None) -> Cells:
    """Change when a run comes, goes or changes on the card, else on the node; and when a cordon does."""
    held = JobCard.objects.filter(card=card) if card is not None else JobNode.objects.filter(node=node)
    here = Q(Exists(held.filter(job=OuterRef("pk"))))
    rows = Job.objects.filter(here).order_by("-open", "-submitted_at", "-id").values_list("id", "state", "held")
    last = Cordon.objects.filter(node=node).aggregate(last=Max("updated_at"))
    return {"jobs.version": version(list(rows[:20])), "cordon.version": version(last["last"])}
