"""The catalogue in the database: shipped models brought in, and cards matched to them."""

import functools
from dataclasses import asdict, dataclass

from django.db import transaction
from django.db.models import Count, Max

from inventory.catalogue import Model, read_catalogue
from inventory.models import CardModel
from inventory.rules.catalogue import Entry, match


@dataclass(frozen=True, slots=True)
class LoadResult:
    """How many rows a load touched; `kept` are a site's own rows that have the slug of a shipped one."""

    created: int
    updated: int
    unchanged: int
    kept: int


@transaction.atomic
def load_catalogue(*, models: list[Model] | None = None) -> LoadResult:
    """Bring shipped models into the database (the files of this release unless `models` are given).

    Repeatable. A row that a site made or took over (`shipped` False) is never changed, and a model
    that is no longer shipped stays, because cards may refer to it. Raises CatalogueError.
    """
    wanted = read_catalogue() if models is None else models
    rows = {row.slug: row for row in CardModel.objects.select_for_update().filter(slug__in=[m.slug for m in wanted])}
    created, updated, kept = [], 0, 0
    for model in wanted:
        row, figures = rows.get(model.slug), asdict(model)
        if row is None:
            created.append(CardModel(**figures, shipped=True))
        elif not row.shipped:
            kept += 1
        elif any(getattr(row, name) != value for name, value in figures.items()):
            for name, value in figures.items():
                setattr(row, name, value)
            row.save()
            updated += 1
    CardModel.objects.bulk_create(created)
    unchanged = len(wanted) - len(created) - updated - kept
    return LoadResult(created=len(created), updated=updated, unchanged=unchanged, kept=kept)


def match_model(
    *, name: str = "", pci_id: str = "", subsystem_id: str = "", memory: int | None = None
) -> CardModel | None:
    """The catalogue row of a card by what it says of itself; None when nothing fits. Memory in bytes.

    One cheap query a call finds out whether the catalogue changed; the rows themselves are kept.
    """
    state = CardModel.objects.aggregate(Count("id"), Max("updated_at"))
    entries, rows = _entries((state["id__count"], state["updated_at__max"]))
    found = match(entries, name=name, pci_id=pci_id, subsystem_id=subsystem_id, memory=memory)
    return rows[found.key] if found is not None else None


@functools.lru_cache(maxsize=1)
def _entries(_state: tuple[int, object]) -> tuple[tuple[Entry, ...], dict[str, CardModel]]:
    rows = {row.slug: row for row in CardModel.objects.all()}
    entries = tuple(
        Entry(
            key=row.slug,
            name_strings=tuple(text for text in (*row.name_strings, row.name) if isinstance(text, str)),
            pci_ids=tuple(text for text in row.pci_ids if isinstance(text, str)),
            memory=row.memory,
        )
        for row in rows.values()
    )
    return entries, rows
