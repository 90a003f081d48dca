"""Maintenance windows: what is ahead, what was, and the form."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.utils.translation import gettext as _

from pools.forms.maintenance import WindowForm
from pools.models import MaintenanceWindow
from pools.services import maintenance as services
from pools.views.editing import confirm, edit
from sensaka.identity.access import inventory_page, operator_page, person

_PAST = 20


@inventory_page
def windows(request: HttpRequest) -> HttpResponse:
    """Windows that are open or ahead, and the last that were."""
    now = timezone.now()
    rows = MaintenanceWindow.objects.select_related("site", "cluster__site", "rack__site", "node__site")
    ahead = rows.filter(ends_at__gt=now, cancelled_at=None)
    past = rows.exclude(ends_at__gt=now, cancelled_at=None).order_by("-starts_at")[:_PAST]
    return render(request, "pools/maintenance.html", {"ahead": ahead, "past": past, "now": now})


@operator_page
def window_add(request: HttpRequest) -> HttpResponse:
    """A new window."""
    user = person(request)
    form = WindowForm(request.POST or None, user=user)
    lead = _("Work that would not end before the window is not started on these nodes.")
    return edit(
        request, form, lambda: services.save_window(None, values=form.values(), actor=user),
        title=_("Add a maintenance window"), back="maintenance", lead=lead,
    )  # fmt: skip


@operator_page
def window_edit(request: HttpRequest, window_id: UUID) -> HttpResponse:
    """Move or rename a window."""
    row, user = get_object_or_404(MaintenanceWindow, pk=window_id), person(request)
    form = WindowForm(request.POST or None, instance=row, user=user)

    def save() -> MaintenanceWindow:
        return services.save_window(MaintenanceWindow.objects.get(pk=window_id), values=form.values(), actor=user)

    return edit(request, form, save, title=str(row.name), back="maintenance")


@operator_page
def window_cancel(request: HttpRequest, window_id: UUID) -> HttpResponse:
    """Call a window off."""
    row = get_object_or_404(MaintenanceWindow, pk=window_id)
    return confirm(
        request, row, lambda: services.cancel_window(row, actor=person(request)), back="maintenance",
        question=_("Call off %(name)s?") % {"name": row}, button=_("Call off"),
        effect=_("The queue no longer plans around it: waiting work may start there at once."),
        done=_("%(name)s is called off.") % {"name": row},
    )  # fmt: skip
