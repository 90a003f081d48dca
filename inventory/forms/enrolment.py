"""Forms by which sources are added: BMC ranges, exporters, agents."""

from datetime import timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from inventory.models import BmcProtocol, Cluster, Credential, Rack, Site
from inventory.observations import TlsPolicy

_PROTOCOLS = [("", _("Find out: Redfish first, then IPMI")), *BmcProtocol.choices]
_TLS = [
    (TlsPolicy.FINGERPRINT, _("Remember the certificate at first contact (recommended)")),
    (TlsPolicy.AUTHORITY, _("Trust certificates of an authority of ours")),
    (TlsPolicy.OFF, _("Don't check certificates")),
]
_NEW = "new"
_DAYS = ((1, _("1 day")), (7, _("7 days")), (30, _("30 days")))


class PlaceForm(forms.Form):
    """Where what is found belongs."""

    site = forms.ModelChoiceField(
        Site.objects.all(), error_messages={"required": _("Choose the site where it stands.")}
    )
    cluster = forms.ModelChoiceField(Cluster.objects.select_related("site"), required=False)
    rack = forms.ModelChoiceField(Rack.objects.select_related("site"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        sites = list(Site.objects.all()[:2])
        if len(sites) == 1:
            self.fields["site"].initial = sites[0].pk
        choice = self.fields["site"]
        assert isinstance(choice, forms.ModelChoiceField)
        choice.empty_label = str(_("Choose a site"))
        for name in ("cluster", "rack"):
            field = self.fields[name]
            assert isinstance(field, forms.ModelChoiceField)
            field.label_from_instance = lambda place: f"{place.name} ({place.site.name})"  # type: ignore[method-assign,assignment]
            field.empty_label = str(_("None"))

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        for name in ("cluster", "rack"):
            place = data.get(name)
            if place is not None and data.get("site") is not None and place.site_id != data["site"].pk:
                self.add_error(name, str(_("It belongs to another site: choose one of the site above.")))
        return data


class BmcRangeForm(PlaceForm):
    """A search for BMCs in an address range."""

    addresses = forms.CharField(
        max_length=500,
        help_text=_("An address, a range or a network, several with commas: 10.0.4.0/24, 10.0.5.10-10.0.5.40"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    protocol = forms.ChoiceField(choices=_PROTOCOLS, required=False)
    ports = forms.CharField(
        max_length=200, required=False, help_text=_("Empty: 443 for Redfish, 623 for IPMI. Several with commas.")
    )
    credential = forms.ChoiceField(label=_("Log-in"))
    new_name = forms.CharField(max_length=100, required=False, label=_("Name of the new log-in"))
    new_username = forms.CharField(
        max_length=100, required=False, label=_("User name"), widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    new_password = forms.CharField(
        max_length=500,
        required=False,
        strip=False,
        label=_("Password"),
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password"}),
    )
    tls = forms.ChoiceField(choices=_TLS, label=_("Certificates"))
    tls_authority = forms.CharField(
        required=False, label=_("Certificate of the authority (PEM)"), widget=forms.Textarea(attrs={"rows": 4})
    )
    interval = forms.IntegerField(
        min_value=5, max_value=3600, initial=30, label=_("Read every"), help_text=_("Seconds, 5 to 3600")
    )
    field_order = [
        "addresses", "credential", "new_name", "new_username", "new_password", "site", "cluster", "rack", "protocol",
        "ports", "tls", "tls_authority", "interval",
    ]  # fmt: skip

    DEPENDENT = {
        "new_name": "credential=new",
        "new_username": "credential=new",
        "new_password": "credential=new",
        "tls_authority": "tls=authority",
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = [(str(row.pk), row.name) for row in Credential.objects.only("id", "name")]
        field = self.fields["credential"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [*known, (_NEW, _("A new one"))]

    def clean_ports(self) -> list[int]:
        ports = []
        for word in self.cleaned_data["ports"].replace(",", " ").split():
            if not word.isascii() or not word.isdigit() or not 0 < int(word) < 65536:
                raise forms.ValidationError(_("%(word)s: use numbers from 1 to 65535.") % {"word": word})
            ports.append(int(word))
        return ports

    def clean(self) -> dict[str, Any]:
        data = super().clean()
        if data.get("credential") == _NEW:
            for name in ("new_name", "new_username", "new_password"):
                if not data.get(name):
                    self.add_error(name, str(_("A new log-in needs this.")))
            if data.get("new_name") and Credential.objects.filter(name=data["new_name"]).exists():
                self.add_error("new_name", str(_("There is a log-in of this name: choose it above, or another name.")))
        if data.get("tls") == TlsPolicy.AUTHORITY and "BEGIN CERTIFICATE" not in data.get("tls_authority", ""):
            self.add_error("tls_authority", str(_("Paste the certificate, with its BEGIN CERTIFICATE line.")))
        return data

    def chosen_credential(self) -> Credential:
        """The log-in that was chosen, or the new one, stored."""
        data = self.cleaned_data
        if data["credential"] == _NEW:
            return Credential.objects.create(
                name=data["new_name"], username=data["new_username"], password=data["new_password"]
            )
        return Credential.objects.get(pk=data["credential"])


class ExporterForm(PlaceForm):
    """A Prometheus page of cards."""

    url = forms.URLField(
        max_length=500,
        assume_scheme="http",
        label=_("Address of the page"),
        help_text=_("For example http://gpu-07.example.org:9400/metrics"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "inputmode": "url"}),
    )
    interval = forms.IntegerField(
        min_value=5, max_value=3600, initial=30, label=_("Read every"), help_text=_("Seconds, 5 to 3600")
    )
    field_order = ["url", "site", "cluster", "rack", "interval"]


class AgentForm(PlaceForm):
    """A token that lets agents enrol."""

    name = forms.CharField(max_length=100, help_text=_("For you to find it again, for example new H100 nodes."))
    uses = forms.IntegerField(
        min_value=1, max_value=10_000, initial=1, label=_("Nodes"), help_text=_("How many nodes may enrol with it")
    )
    days = forms.TypedChoiceField(label=_("Valid for"), choices=_DAYS, coerce=int, initial=1)
    field_order = ["name", "site", "cluster", "rack", "uses", "days"]

    def life(self) -> timedelta:
        """How long the token is valid."""
        return timedelta(days=self.cleaned_data["days"])


class IntervalForm(forms.Form):
    """A collector's rhythm."""

    interval = forms.IntegerField(min_value=5, max_value=3600, help_text=_("Seconds, 5 to 3600"))
