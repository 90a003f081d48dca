"""The journal of the whole fleet."""

from typing import cast

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import cached_property

from inventory.models import JournalEntry, JournalKind
from sensaka.identity.access import inventory_page

_PAGE = 100
_DEEPEST = 100


class _Uncounted(Paginator):  # type: ignore[type-arg]
    """Pages of a table that only grows: at most 100 pages back, without counting every row."""

    @cached_property
    def count(self) -> int:
        rows = cast("QuerySet[JournalEntry]", self.object_list)
        return rows[: _PAGE * _DEEPEST].count()


def rows(request: HttpRequest) -> QuerySet[JournalEntry]:
    """The entries that pass the filters of the address, the newest first."""
    found = JournalEntry.objects.select_related("node", "card", "actor")
    kind = request.GET.get("kind", "")
    if kind in JournalKind.values:
        found = found.filter(kind=kind)
    for word in request.GET.get("q", "").replace("\x00", "").split()[:5]:
        found = found.filter(text__icontains=word)
    return found


@inventory_page
def journal(request: HttpRequest) -> HttpResponse:
    """What happened, the newest first; filtered by kind and words."""
    page = _Uncounted(rows(request), _PAGE).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "journal": page.object_list,
        "kinds": JournalKind.choices,
        "kind": request.GET.get("kind", ""),
        "whole": True,
    }
    return render(request, "cockpit/journal.html", context)
