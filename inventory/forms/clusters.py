"""Forms of clusters: connecting a scheduler, taking nodes out and back, acting on jobs."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from inventory.models import Cluster, ClusterConnection, Scheduler, Site
from inventory.services.clusters.opening import Access
from inventory.services.clusters.steering import SIGNALS

_NEW = "new"
KEY, TOKEN, COMMANDS = "slurm-key", "slurm-token", "slurm-commands"
KUBECONFIG, API_TOKEN, POD = "kubeconfig", "kubernetes-token", "in-cluster"
_WAYS = [
    (
        _("Slurm"),
        [
            (KEY, _("slurmrestd, with Slurm's key (recommended: we renew the tokens)")),
            (TOKEN, _("slurmrestd, with a token")),
            (COMMANDS, _("Slurm's commands on this host")),
        ],
    ),
    (
        _("Kubernetes"),
        [
            (KUBECONFIG, _("API server, with a kubeconfig")),
            (API_TOKEN, _("API server, with the token of a service account")),
            (POD, _("The service account of the pod that Sensaka runs in")),
        ],
    ),
]
_SECRET = {"autocomplete": "off", "spellcheck": "false", "rows": 4, "hx-preserve": "true"}
REASON_LENGTH = 200


class SecretTextarea(forms.Textarea):
    """A secret of several lines. It is never sent back; while the form is tried, the browser keeps what was typed."""

    def format_value(self, value: Any) -> str | None:
        return None


class ConnectionForm(forms.Form):
    """How a scheduler is reached. A secret that is stored is never shown; left empty it stays."""

    way = forms.ChoiceField(choices=_WAYS, label=_("Scheduler, and how it is reached"))
    address = forms.CharField(
        max_length=500,
        required=False,
        help_text=_("Slurm: http://slurm.example.org:6820 or unix:/run/slurmrestd.sock. Kubernetes: https://api:6443"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "inputmode": "url"}),
    )
    username = forms.CharField(
        max_length=100,
        required=False,
        label=_("User"),
        help_text=_("The user of Slurm that the token is of, with AdminLevel Operator at least"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    jwt_key = forms.CharField(
        max_length=4000,
        required=False,
        label=_("Slurm's key"),
        help_text=_("The bytes of jwt_hs256.key as base64 (base64 -w0). Stored encrypted, never shown again."),
        widget=SecretTextarea(attrs=_SECRET),
    )
    token = forms.CharField(
        max_length=8000,
        required=False,
        help_text=_("Of scontrol token, or of a service account. Stored encrypted, never shown again."),
        widget=SecretTextarea(attrs=_SECRET),
    )
    kubeconfig = forms.CharField(
        max_length=200_000,
        required=False,
        strip=False,
        help_text=_("The file's text, with its certificates and token inside. Stored encrypted, never shown again."),
        widget=SecretTextarea(attrs={**_SECRET, "rows": 6}),
    )
    commands = forms.BooleanField(
        required=False,
        label=_("Use Slurm's commands on this host for what its interface can't do"),
    )
    slurm_conf = forms.CharField(
        max_length=500, required=False, label=_("Path of slurm.conf"), help_text=_("Empty: the default of the commands")
    )
    tls_authority = forms.CharField(
        required=False,
        label=_("Certificate of the authority (PEM)"),
        help_text=_("Empty: certificates that this host trusts"),
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
    )
    interval = forms.IntegerField(
        min_value=5, max_value=3600, initial=10, label=_("Read every"), help_text=_("Seconds, 5 to 3600")
    )

    DEPENDENT = {
        "address": f"way={KEY}|{TOKEN}|{API_TOKEN}",
        "username": f"way={KEY}|{TOKEN}",
        "jwt_key": f"way={KEY}",
        "token": f"way={TOKEN}|{API_TOKEN}",
        "commands": f"way={KEY}|{TOKEN}",
        "slurm_conf": f"way={COMMANDS}|{KEY}|{TOKEN}",
        "kubeconfig": f"way={KUBECONFIG}",
        "tls_authority": f"way={KEY}|{TOKEN}|{API_TOKEN}",
    }

    def __init__(self, *args: Any, stored: ClusterConnection | None = None, **kwargs: Any) -> None:
        self.stored = stored
        if stored is not None:
            kwargs.setdefault("initial", _shown(stored))
        super().__init__(*args, **kwargs)
        for name in ("address", "username", "jwt_key", "token", "kubeconfig"):
            self.fields[name].needed = True  # type: ignore[attr-defined]  # where it is shown, it is not optional
        if stored is not None:  # another scheduler is another connection
            field = self.fields["way"]
            assert isinstance(field, forms.ChoiceField)
            field.choices = _WAYS[1:] if stored.scheduler == Scheduler.KUBERNETES else _WAYS[:1]
        for name in ("jwt_key", "token", "kubeconfig") if stored is not None else ():
            if getattr(stored, name):
                self.fields[name].help_text = _("One is stored. Leave this empty to keep it.")
                self.fields[name].needed = False  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        way = data.get("way", "")
        if way in (KEY, TOKEN, API_TOKEN) and not data.get("address"):
            example = "https://api.example.org:6443" if way == API_TOKEN else "http://slurm.example.org:6820"
            self.add_error("address", str(_("Give the whole address, like %(example)s.") % {"example": example}))
        if way in (KEY, TOKEN) and not data.get("username"):
            self.add_error("username", str(_("Give the name of the user that the token is of.")))
        for name, needed in (("jwt_key", (KEY,)), ("token", (TOKEN, API_TOKEN)), ("kubeconfig", (KUBECONFIG,))):
            if way in needed and not data.get(name) and not getattr(self.stored, name, ""):
                self.add_error(name, str(_("Paste it here: without it this way does not open.")))
        authority = data.get("tls_authority", "")
        if authority and "BEGIN CERTIFICATE" not in authority:
            self.add_error("tls_authority", str(_("Paste the certificate, with its BEGIN CERTIFICATE line.")))
        return data

    @property
    def scheduler(self) -> Scheduler:
        """The scheduler that the chosen way leads to."""
        kubernetes = self.cleaned_data["way"] in (KUBECONFIG, API_TOKEN, POD)
        return Scheduler.KUBERNETES if kubernetes else Scheduler.SLURM

    def access(self) -> Access:
        """What the chosen way needs, the rest empty; a secret that was not typed is the stored one."""
        data, way = self.cleaned_data, self.cleaned_data["way"]
        slurmrestd = way in (KEY, TOKEN)
        addressed = slurmrestd or way == API_TOKEN
        return Access(
            scheduler=self.scheduler.value,
            address=data["address"] if addressed else "",
            username=data["username"] if slurmrestd else "",
            token=self._secret("token") if way in (TOKEN, API_TOKEN) else "",
            jwt_key=self._secret("jwt_key") if way == KEY else "",
            kubeconfig=self._secret("kubeconfig") if way == KUBECONFIG else "",
            in_cluster=way == POD,
            tls_authority=data["tls_authority"] if addressed else "",
            commands=way == COMMANDS or (slurmrestd and data["commands"]),
            slurm_conf=data["slurm_conf"] if way == COMMANDS or data["commands"] else "",
        )

    def _secret(self, name: str) -> str:
        typed: str = self.cleaned_data[name].strip()
        return typed or str(getattr(self.stored, name, ""))


def _shown(stored: ClusterConnection) -> dict[str, Any]:
    """What a form shows of a stored connection: no secret."""
    if stored.scheduler == Scheduler.KUBERNETES:
        way = POD if stored.in_cluster else API_TOKEN if stored.address else KUBECONFIG
    elif not stored.address:
        way = COMMANDS
    else:
        way = TOKEN if stored.token and not stored.jwt_key else KEY
    names = ("address", "username", "commands", "slurm_conf", "tls_authority", "interval")
    return {"way": way, **{name: getattr(stored, name) for name in names}}


class ConnectForm(ConnectionForm):
    """A connection for a cluster that has none, or for a new one."""

    cluster = forms.ChoiceField(help_text=_("The nodes that this scheduler runs"))
    site = forms.ModelChoiceField(Site.objects.all(), required=False, label=_("Site of the new cluster"))
    name = forms.CharField(max_length=100, required=False, label=_("Name of the new cluster"))
    field_order = ["way", "cluster", "site", "name", "address", "username", "jwt_key", "token", "kubeconfig"]

    DEPENDENT = {**ConnectionForm.DEPENDENT, "site": f"cluster={_NEW}", "name": f"cluster={_NEW}"}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rows = Cluster.objects.select_related("site").filter(connection=None)
        self._known = {str(row.pk): row for row in rows}
        field = self.fields["cluster"]
        assert isinstance(field, forms.ChoiceField)
        known = [(key, f"{row.name} ({row.site.name})") for key, row in self._known.items()]
        field.choices = [*known, (_NEW, _("A new one"))]
        for name in ("site", "name"):
            self.fields[name].needed = True  # type: ignore[attr-defined]
        sites = list(Site.objects.all()[:2])
        if len(sites) == 1:
            self.fields["site"].initial = sites[0].pk

    def clean(self) -> dict[str, Any]:
        data = super().clean()
        if data.get("cluster") != _NEW:
            return data
        for name in ("site", "name"):
            if not data.get(name) and name not in self.errors:
                self.add_error(name, str(_("A new cluster needs this.")))
        if data.get("site") and Cluster.objects.filter(site=data["site"], name=data.get("name", "")).exists():
            self.add_error("name", str(_("There is a cluster of this name at the site: choose it above.")))
        return data

    def chosen_cluster(self) -> Cluster:
        """The cluster that was chosen, or the new one, stored."""
        data = self.cleaned_data
        if data["cluster"] == _NEW:
            return Cluster.objects.create(site=data["site"], name=data["name"])
        return self._known[data["cluster"]]


class ReasonForm(forms.Form):
    """Why something is done: it stands in the journal, and in the scheduler where it keeps reasons."""

    reason = forms.CharField(
        max_length=REASON_LENGTH,
        label=_("Reason"),
        help_text=_("Others see it: say what is wrong and until when."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


class SignalForm(ReasonForm):
    """A signal for the processes of a job."""

    signal = forms.ChoiceField(choices=[(name, name) for name in SIGNALS], initial="TERM")
    field_order = ["signal", "reason"]
