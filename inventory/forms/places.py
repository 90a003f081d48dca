"""Forms of settings: places, credentials, card models, busy thresholds."""

from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.utils.translation import gettext_lazy as _

from inventory.models import BusyThreshold, CardModel, Cluster, Credential, Rack, Site


class SiteForm(forms.ModelForm):  # type: ignore[type-arg]
    """A data centre or machine room."""

    class Meta:
        model = Site
        fields = ["name", "kind", "time_zone"]
        widgets = {"time_zone": forms.TextInput(attrs={"list": "time-zones"})}

    def clean_time_zone(self) -> str:
        value: str = self.cleaned_data["time_zone"]
        if value not in available_timezones():
            raise forms.ValidationError(_("Use an IANA name such as Europe/Zurich or UTC."))
        return value


class ClusterForm(forms.ModelForm):  # type: ignore[type-arg]
    """Nodes that are run together."""

    site = forms.ModelChoiceField(Site.objects.all(), empty_label=_("Choose a site"))

    class Meta:
        model = Cluster
        fields = ["site", "name"]


class RackForm(forms.ModelForm):  # type: ignore[type-arg]
    """A rack."""

    site = forms.ModelChoiceField(Site.objects.all(), empty_label=_("Choose a site"))
    height = forms.IntegerField(min_value=1, max_value=100, initial=42, label=_("Height, U"), help_text=_("Rack units"))
    design_power = forms.IntegerField(
        min_value=1,
        max_value=10_000_000,
        required=False,
        label=_("Design power, W"),
        help_text=_("What the rack is built for"),
    )

    class Meta:
        model = Rack
        fields = ["site", "name", "height", "design_power"]


PLACE_FORMS: "dict[str, type[forms.ModelForm[Any]]]" = {"site": SiteForm, "cluster": ClusterForm, "rack": RackForm}


class CredentialForm(forms.ModelForm):  # type: ignore[type-arg]
    """A log-in for BMCs. The password is written and never shown; left empty on edit it stays as it is."""

    password = forms.CharField(
        strip=False,
        max_length=500,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("Stored encrypted and never shown again."),
    )

    class Meta:
        model = Credential
        fields = ["name", "username", "password"]
        widgets = {"username": forms.TextInput(attrs={"autocomplete": "off"})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance._state.adding:
            self.initial.pop("password", None)
            self.fields["password"].required = False
            self.fields["password"].help_text = _("Stored encrypted. Leave empty to keep the present one.")

    def save(self, commit: bool = True) -> Credential:
        if not self.cleaned_data.get("password") and not self.instance._state.adding:
            self.instance.password = Credential.objects.get(pk=self.instance.pk).password
        saved: Credential = super().save(commit)
        return saved


class CardModelForm(forms.ModelForm):  # type: ignore[type-arg]
    """A product of the site's own catalogue."""

    memory_gib = forms.DecimalField(
        label=_("Memory, GiB"), min_value=0, max_value=100_000, max_digits=9, decimal_places=3, required=False
    )
    name_lines = forms.CharField(
        label=_("Names that devices report"),
        widget=forms.Textarea(attrs={"rows": 3}),
        required=False,
        help_text=_("One a line, exactly as the driver or BMC writes it."),
    )
    pci_lines = forms.CharField(
        label=_("PCI ids"),
        widget=forms.Textarea(attrs={"rows": 2}),
        required=False,
        help_text=_("One a line, vendor:device in lower-case hexadecimal, for example 10de:2330."),
    )
    source = forms.CharField(
        label=_("Where the figures come from"),
        max_length=300,
        required=False,
        help_text=_("A data sheet, for example."),
    )

    class Meta:
        model = CardModel
        fields = ["slug", "vendor", "name", "tdp", "slowdown_temperature", "nvlink_links"]
        labels = {"slug": _("Short name"), "tdp": _("Rated power, W"), "nvlink_links": _("NVLink links"),
                  "slowdown_temperature": _("Slows down from, °C")}  # fmt: skip
        help_texts = {"slug": _("Lower-case letters, digits and hyphens."), "tdp": "", "slowdown_temperature": ""}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        model = self.instance
        if not model._state.adding:
            self.initial["memory_gib"] = None if model.memory is None else round(model.memory / 1024**3, 3)
            self.initial["name_lines"] = "\n".join(model.name_strings)
            self.initial["pci_lines"] = "\n".join(model.pci_ids)
            self.initial["source"] = model.sources.get("all", "")

    def clean_pci_lines(self) -> list[str]:
        found = []
        for line in self.cleaned_data["pci_lines"].lower().split():
            vendor, separator, device = line.partition(":")
            digits = set("0123456789abcdef")
            if not separator or len(vendor) != 4 or len(device) != 4 or not set(vendor + device) <= digits:
                raise forms.ValidationError(_("%(line)s: use vendor:device, for example 10de:2330.") % {"line": line})
            found.append(line)
        return found

    def save(self, commit: bool = True) -> CardModel:
        data = self.cleaned_data
        model = self.instance
        model.memory = None if data["memory_gib"] is None else int(data["memory_gib"] * 1024**3)
        model.name_strings = [line.strip() for line in data["name_lines"].splitlines() if line.strip()]
        model.pci_ids = data["pci_lines"]
        if data["source"]:
            model.sources = {**model.sources, "all": data["source"]}
        saved: CardModel = super().save(commit)
        return saved


class ThresholdForm(forms.ModelForm):  # type: ignore[type-arg]
    """From which activity a card counts as busy."""

    activity = forms.FloatField(
        min_value=0.1,
        max_value=100,
        initial=5,
        label=_("Busy from, %"),
        help_text=_("Of SM activity where known, else of GPU utilization."),
    )

    class Meta:
        model = BusyThreshold
        fields = ["model", "cluster", "activity"]
        labels = {"model": _("Card model"), "cluster": _("Cluster")}
        help_texts = {"model": _("Empty: every model."), "cluster": _("Empty: every cluster.")}

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        same = BusyThreshold.objects.filter(model=data.get("model"), cluster=data.get("cluster"))
        if same.exclude(pk=self.instance.pk).exists():
            raise forms.ValidationError(_("There is a threshold for this model and cluster: edit that one."))
        return data
