"""Forms of pools: what they offer, and which cards are theirs."""

from typing import Any

from django import forms
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from inventory.models import Card, CardModel, Cluster, Node
from pools.forms.base import RowForm, ScaledField, labels_of
from pools.models import Pool, SharingMode, Tenant

_MINUTE, _HOUR = 60, 3600


def _cluster_name(cluster: Cluster) -> str:
    return f"{cluster.name} ({cluster.site.name})"


class RuleForm(forms.Form):
    """The conditions of one rule. A card is taken when it meets all that are given."""

    model = forms.ModelChoiceField(CardModel.objects.all(), required=False, label=_("Card model"))
    cluster = forms.ModelChoiceField(Cluster.objects.select_related("site"), required=False)
    labels = forms.CharField(
        required=False, max_length=4000, widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
        help_text=_("Labels of the node, one name=value a line; all must be there."),
    )  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, empty in (("model", _("Any model")), ("cluster", _("Any cluster"))):
            field = self.fields.get(name)
            if isinstance(field, forms.ModelChoiceField):
                field.empty_label = str(empty)
                if name == "cluster":
                    field.label_from_instance = _cluster_name  # type: ignore[method-assign,assignment]

    def clean_labels(self) -> dict[str, str]:
        return labels_of(self.cleaned_data["labels"])

    @property
    def given(self) -> bool:
        """Whether any condition is given."""
        data = self.cleaned_data
        return bool(data.get("model") or data.get("cluster") or data.get("labels"))

    def conditions(self) -> dict[str, Any]:
        """What the services and the preview take."""
        return {
            name: self.cleaned_data.get(name) or ({} if name == "labels" else None)
            for name in ("model", "cluster", "labels")
        }


class RequiredRuleForm(RuleForm):
    """A rule that is added by itself."""

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if not self.errors and not self.given:
            raise forms.ValidationError(_("Name a model, a cluster or a label: a rule without any takes nothing."))
        return data


class PoolForm(RowForm):
    """What a pool is called, who may use it, and what happens to idle cards."""

    sharing = forms.MultipleChoiceField(
        choices=SharingMode.choices, widget=forms.CheckboxSelectMultiple, initial=[SharingMode.WHOLE],
        label=_("How cards may be used"),
    )  # fmt: skip
    tenants = forms.ModelMultipleChoiceField(
        Tenant.objects.all(), required=False, label=_("Only for"), widget=forms.CheckboxSelectMultiple,
        help_text=_("Nobody chosen: every tenant may use it."),
    )  # fmt: skip
    longest_run = ScaledField(
        scale=_HOUR, min_value=1, max_value=8784, required=False, label=_("Longest run, hours"),
        help_text=_("Requests ask for at most this; empty: up to a year."),
    )  # fmt: skip
    idle_after = ScaledField(
        scale=_MINUTE, min_value=1, max_value=527_040, label=_("Idle after, minutes"), initial=7200
    )
    idle_grace = ScaledField(
        scale=_MINUTE, min_value=0, max_value=527_040, label=_("Grace after the start, minutes"), initial=1800
    )
    idle_warning_gap = ScaledField(
        scale=_MINUTE, min_value=1, max_value=527_040, label=_("From each warning to the next step, minutes"),
        initial=1800,
    )  # fmt: skip
    idle_coverage = forms.FloatField(
        min_value=50, max_value=100, initial=90, label=_("Coverage needed, %"),
        help_text=_("With fewer samples nothing is called idle."),
    )  # fmt: skip

    class Meta:
        model = Pool
        fields = [
            "name", "description", "tenants", "accepting", "rank", "sharing", "longest_run", "idle_policy",
            "idle_after", "idle_grace", "idle_warning_gap", "idle_coverage",
        ]  # fmt: skip
        labels = {"accepting": _("Takes new requests"), "idle_policy": _("Cards that are held and not used")}
        help_texts = {"accepting": ""}


class NewPoolForm(RuleForm):
    """A pool in one step: its name and its first rule. The rest has defaults and is set later."""

    name = forms.CharField(max_length=100)
    description = forms.CharField(max_length=500, required=False)
    field_order = ["name", "description", "model", "cluster", "labels"]

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if Pool.objects.filter(name=name).exists():
            raise forms.ValidationError(_("There is a pool of this name."))
        return name


class MemberForm(forms.Form):
    """A card or node to be taken in or left out by hand."""

    named = forms.CharField(
        max_length=200, label=_("Node or card"), help_text=_("A node's name, or a card's UUID or serial"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )  # fmt: skip
    included = forms.TypedChoiceField(
        choices=((1, _("Take in")), (0, _("Leave out"))), coerce=lambda value: value == "1", label=_("What to do")
    )

    def clean_named(self) -> dict[str, Any]:
        text = self.cleaned_data["named"].strip()
        nodes = list(Node.objects.exclude(state="retired").filter(name=text)[:2])
        cards = [] if nodes else list(Card.objects.filter(Q(uuid=text) | Q(serial=text)).exclude(state="retired")[:2])
        if len(nodes) > 1:
            raise forms.ValidationError(_("Several sites have a node of this name: name its cards by UUID."))
        if len(cards) > 1:
            raise forms.ValidationError(_("Several cards have this serial: give the UUID."))
        if not nodes and not cards:
            raise forms.ValidationError(_("No node or card is called that."))
        return {"node": nodes[0]} if nodes else {"card": cards[0]}
