"""The form of a maintenance window."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from inventory.models import Cluster, Node, Rack
from pools.forms.base import MomentField, RowForm, zone_of
from pools.models import PLACE_TARGETS, MaintenanceWindow
from sensaka.identity.models import User


def _with_site(place: Any) -> str:
    return f"{place.name} ({place.site.name})"


class WindowForm(RowForm):
    """Which place must be empty, from when to when."""

    cluster = forms.ModelChoiceField(Cluster.objects.select_related("site"), required=False)
    rack = forms.ModelChoiceField(Rack.objects.select_related("site"), required=False)
    node = forms.ModelChoiceField(Node.objects.exclude(state="retired").select_related("site"), required=False)
    starts_at = MomentField(label=_("From"))
    ends_at = MomentField(label=_("To"))
    field_order = ["name", "starts_at", "ends_at", "site", "cluster", "rack", "node", "reason"]

    class Meta:
        model = MaintenanceWindow
        fields = ["name", "starts_at", "ends_at", "site", "cluster", "rack", "node", "reason"]

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in PLACE_TARGETS:
            field = self.fields[name]
            assert isinstance(field, forms.ModelChoiceField)
            field.empty_label = "-"
            if name != "site":
                field.label_from_instance = _with_site  # type: ignore[method-assign,assignment]
        self.fields["site"].help_text = _("Exactly one of site, cluster, rack and node.")
        for name in ("starts_at", "ends_at"):
            moment = self.fields[name]
            assert isinstance(moment, MomentField)
            moment.in_zone(zone_of(user))
