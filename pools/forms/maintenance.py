"""The form of a maintenance window."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from inventory.models import Cluster, Node, Rack, Site
from pools.forms.base import MomentField, RowForm, zone_of
from pools.models import PLACE_TARGETS, MaintenanceWindow
from sensaka.identity.models import User

_KINDS = (("node", _("One node")), ("rack", _("A rack")), ("cluster", _("A cluster")), ("site", _("A whole site")))


def _with_site(place: Any) -> str:
    return f"{place.name} ({place.site.name})"


class WindowForm(RowForm):
    """Which place must be empty, from when to when. Nodes are typed: there may be thousands."""

    starts_at = MomentField(label=_("From"))
    ends_at = MomentField(label=_("To"))
    kind = forms.ChoiceField(choices=_KINDS, label=_("What must be empty"))
    site = forms.ModelChoiceField(Site.objects.all(), required=False, empty_label=_("Choose a site"))
    cluster = forms.ModelChoiceField(
        Cluster.objects.select_related("site"), required=False, empty_label=_("Choose a cluster")
    )
    rack = forms.ModelChoiceField(Rack.objects.select_related("site"), required=False, empty_label=_("Choose a rack"))
    node_name = forms.CharField(
        max_length=200,
        required=False,
        label=_("Name of the node"),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    field_order = ["name", "starts_at", "ends_at", "kind", "node_name", "rack", "cluster", "site", "reason"]

    DEPENDENT = {"node_name": "kind=node", "rack": "kind=rack", "cluster": "kind=cluster", "site": "kind=site"}

    class Meta:
        model = MaintenanceWindow
        fields = ["name", "starts_at", "ends_at", "reason"]

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("cluster", "rack"):
            field = self.fields[name]
            assert isinstance(field, forms.ModelChoiceField)
            field.label_from_instance = _with_site  # type: ignore[method-assign,assignment]
        for name in ("starts_at", "ends_at"):
            moment = self.fields[name]
            assert isinstance(moment, MomentField)
            moment.in_zone(zone_of(user))
        row = self.instance
        if not row._state.adding:
            self.initial["kind"] = row.place._meta.model_name
            self.initial.update({name: getattr(row, f"{name}_id") for name in ("site", "cluster", "rack")})
            self.initial["node_name"] = row.node.name if row.node else ""

    def clean_node_name(self) -> Node | None:
        name = self.cleaned_data["node_name"].strip()
        if not name or self.data.get("kind") != "node":
            return None
        found = list(Node.objects.exclude(state="retired").filter(name=name)[:2])
        if len(found) != 1:
            several = _("Several sites have a node of this name: choose its rack.")
            raise forms.ValidationError(several if found else _("There is no node of this name."))
        return found[0]

    def clean(self) -> dict[str, Any]:
        """The chosen kind's place goes onto the row, so that its constraints are checked with it."""
        data = super().clean() or {}
        field = "node_name" if data.get("kind") == "node" else data.get("kind")
        if field and not data.get(field) and field not in self.errors:
            self.add_error(field, str(_("Say which one.")))
        for name, place in self._places().items():
            setattr(self.instance, name, place)
        return data

    def _places(self) -> dict[str, Any]:
        data, kind = self.cleaned_data, self.cleaned_data.get("kind")
        return {
            name: data.get("node_name" if name == "node" else name) if name == kind else None for name in PLACE_TARGETS
        }

    def values(self) -> dict[str, Any]:
        """The row's own fields and its one place."""
        data = self.cleaned_data
        return {name: data[name] for name in ("name", "starts_at", "ends_at", "reason")} | self._places()
