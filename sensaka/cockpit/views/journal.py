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


@inventory_page
def journal(request: HttpRequest) -> HttpResponse:
    """What happened, the newest first; filtered by kind and words."""
    rows = JournalEntry.objects.select_related("node", "card", "actor")
    kind = request.GET.get("kind", "")
    if kind in JournalKind.values:
        rows = rows.filter(kind=kind)
    if words := request.GET.get("q", "").replace("\x00", "").split():
        for word in words[:5]:
            rows = rows.filter(text__icontains=word)
    page = _Uncounted(rows, _PAGE).get_page(request.GET.get("page"))
    context = {"page": page, "journal": page.object_list, "kinds": JournalKind.choices, "kind": kind, "whole": True}
    return render(request, "cockpit/journal.html", context)
