"""Forms of specs and priority classes."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from inventory.models import CardModel
from pools.forms.base import GIB, RowForm, ScaledField
from pools.models import Pool, PriorityClass, SharingMode, Spec, Tenant


class SpecForm(RowForm):
    """A size that tenants ask for by name."""

    card_models = forms.ModelMultipleChoiceField(
        CardModel.objects.all(), label=_("Card models"), help_text=_("Any of them; all cards of a request are of one.")
    )
    pools = forms.ModelMultipleChoiceField(
        Pool.objects.all(), required=False, label=_("Offered in"), widget=forms.CheckboxSelectMultiple
    )
    cards = forms.IntegerField(min_value=1, max_value=1024, initial=1, label=_("Cards per unit"))
    profile = forms.CharField(max_length=64, required=False, label=_("MIG profile"), help_text=_("For example 3g.40gb"))
    shares_per_card = forms.IntegerField(min_value=2, max_value=48, required=False, label=_("Parts per card"))
    cpu_cores = forms.FloatField(min_value=0, max_value=100_000, required=False, label=_("CPU cores per unit"))
    memory = ScaledField(scale=GIB, min_value=0, max_value=10**6, required=False, label=_("Memory per unit, GiB"))
    currency = forms.RegexField(
        r"^[A-Za-z]{3}$", required=False, max_length=3, help_text=_("Three letters, for example EUR")
    )
    field_order = [
        "name", "description", "card_models", "mode", "cards", "profile", "shares_per_card", "cpu_cores", "memory",
        "near", "pools", "price", "currency", "active",
    ]  # fmt: skip

    DEPENDENT = {
        "cards": f"mode={SharingMode.WHOLE}",
        "profile": f"mode={SharingMode.MIG}",
        "shares_per_card": f"mode={SharingMode.TIME_SLICE}|{SharingMode.MPS}",
    }

    class Meta:
        model = Spec
        fields = [
            "name", "description", "card_models", "mode", "cards", "profile", "shares_per_card", "cpu_cores", "memory",
            "near", "pools", "price", "currency", "active",
        ]  # fmt: skip
        labels = {
            "mode": _("How a card is used"), "near": _("Units of a request stand in"),
            "price": _("Price per unit-hour"), "active": _("Offered"),
        }  # fmt: skip
        help_texts = {"price": "", "active": _("Withdrawn, it can't be asked for; what was asked for stays.")}

    def clean(self) -> dict[str, Any]:
        """Fields of other ways of sharing are hidden on the page, so what they hold is dropped."""
        data = super().clean() or {}
        mode = data.get("mode")
        if mode != SharingMode.WHOLE:
            data["cards"] = 1
        if mode != SharingMode.MIG:
            data["profile"] = ""
        if mode not in (SharingMode.TIME_SLICE, SharingMode.MPS):
            data["shares_per_card"] = 1
        elif not data.get("shares_per_card") and "shares_per_card" not in self.errors:
            self.add_error("shares_per_card", str(_("Say into how many parts a card is divided.")))
        data["currency"] = (data.get("currency") or "").upper()
        if data.get("price") is not None and not data["currency"] and "currency" not in self.errors:
            self.add_error("currency", str(_("A price needs its currency.")))
        if data.get("price") is None:
            data["currency"] = ""
        return data


class PriorityClassForm(RowForm):
    """How urgent work is, at what price, and whether it may be interrupted."""

    minimum_run = ScaledField(
        scale=60, min_value=0, max_value=527_040, initial=0, label=_("Never interrupted in the first, minutes")
    )
    grace = forms.IntegerField(
        min_value=0, max_value=86_400, initial=120, label=_("From the signal to the end, seconds")
    )
    tenants = forms.ModelMultipleChoiceField(
        Tenant.objects.all(), required=False, label=_("Only for"), widget=forms.CheckboxSelectMultiple,
        help_text=_("Nobody chosen: every tenant may ask with it."),
    )  # fmt: skip
    # not a field of the row here: the service moves the mark, so another class that has it is no fault
    default = forms.BooleanField(required=False, label=_("For requests that name no class"))

    class Meta:
        model = PriorityClass
        fields = [
            "name", "description", "value", "price_factor", "preemptible", "may_preempt", "minimum_run", "grace",
            "tenants",
        ]  # fmt: skip
        labels = {
            "value": _("Priority"), "price_factor": _("Price factor"),
            "preemptible": _("Higher classes may take its cards"),
            "may_preempt": _("May take cards of lower preemptible classes"),
        }  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding:
            self.initial["default"] = self.instance.default
