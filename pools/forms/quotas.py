"""Forms of quotas: the record, and its limits as lines."""

from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from inventory.models import CardModel
from pools.forms.base import GIB, RowForm
from pools.models import Project, Quota, QuotaLimit, Resource, Tenant

_BYTES = frozenset({Resource.MEMORY.value, Resource.STORAGE.value})


def shown_amount(resource: str, amount: Decimal | None) -> Decimal | None:
    """As people type it: bytes as GiB."""
    if amount is None:
        return None
    shown = amount / GIB if resource in _BYTES else amount
    return Decimal(int(shown)) if shown == int(shown) else round(shown, 3)


def stored_amount(resource: str, amount: Decimal | None) -> Decimal | None:
    """In the unit of the resource: GiB as bytes."""
    return amount * GIB if amount is not None and resource in _BYTES else amount


def _project_name(project: Project) -> str:
    return f"{project.tenant.name}: {project.name}"


class QuotaForm(RowForm):
    """Of whom, over which period, and what happens when it is used up."""

    tenant = forms.ModelChoiceField(Tenant.objects.all(), empty_label=_("Choose a tenant"))
    project = forms.ModelChoiceField(
        Project.objects.select_related("tenant"), required=False, help_text=_("Empty: the tenant as a whole.")
    )

    class Meta:
        model = Quota
        fields = ["tenant", "project", "period", "time_zone", "over_quota"]
        labels = {"over_quota": _("When a period is used up")}
        widgets = {"time_zone": forms.TextInput(attrs={"list": "time-zones"})}
        help_texts = {"time_zone": _("Where the period begins; an IANA name such as Europe/Zurich.")}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        project = self.fields["project"]
        assert isinstance(project, forms.ModelChoiceField)
        project.label_from_instance = _project_name  # type: ignore[method-assign,assignment]
        project.empty_label = str(_("All projects"))
        if not self.instance._state.adding:
            self.fields["tenant"].disabled = self.fields["project"].disabled = True


class LimitForm(forms.Form):
    """One line. An empty amount leaves the line out."""

    resource = forms.ChoiceField(choices=[("", "-"), *Resource.choices], required=False, label=_("What"))
    model = forms.ModelChoiceField(CardModel.objects.all(), required=False, empty_label=_("All models"))
    nominal = forms.DecimalField(
        min_value=0, max_digits=16, decimal_places=3, required=False, label=_("Amount"), localize=False
    )
    borrowing = forms.DecimalField(
        min_value=0, max_digits=16, decimal_places=3, required=False, label=_("May borrow"), localize=False
    )
    lending = forms.DecimalField(
        min_value=0, max_digits=16, decimal_places=3, required=False, label=_("Lends"), localize=False
    )

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("resource") and data.get("nominal") is None and "nominal" not in self.errors:
            self.add_error("nominal", str(_("Give an amount, or leave the whole line empty.")))
        if data.get("nominal") is not None and not data.get("resource"):
            self.add_error("resource", str(_("Say what is limited.")))
        return data

    def line(self) -> dict[str, Any] | None:
        """What the service takes, None for an empty line."""
        data = self.cleaned_data
        resource = data.get("resource")
        if not resource:
            return None
        amounts = {name: stored_amount(resource, data[name]) for name in ("nominal", "borrowing", "lending")}
        return {"resource": resource, "model": data["model"], **amounts}


LimitFormSet = forms.formset_factory(LimitForm, extra=3, max_num=40)


def limits_shown(quota: Quota | None) -> list[dict[str, Any]]:
    """The lines of a quota as a form shows them; of a new one the three that most want."""
    if quota is None:
        return [
            {"resource": Resource.CARDS, "borrowing": 0}, {"resource": Resource.HOURS, "borrowing": 0},
        ]  # fmt: skip
    rows: list[QuotaLimit] = list(quota.limits.all())
    return [
        {
            "resource": row.resource,
            "model": row.model_id,
            **{name: shown_amount(row.resource, getattr(row, name)) for name in ("nominal", "borrowing", "lending")},
        }
        for row in rows
    ]
