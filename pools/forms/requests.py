"""Forms of requests: asking for a spec, asking for more time, and the reasons that acts need."""

import shlex
from typing import Any
from uuid import UUID

from django import forms
from django.utils.translation import gettext_lazy as _

from pools.forms.base import MomentField, ScaledField, zone_of
from pools.models import Launch, Near, Pool, PriorityClass, Project, Spec
from pools.selectors.access import requestable_projects
from pools.services.asking import LONGEST, MOST_UNITS, SHORTEST, Work
from sensaka.identity.models import User

HOUR = 3600
USUAL = 4 * HOUR
"""The time limit (seconds) that a new form proposes, where the pool allows as much."""
_CODE = {"spellcheck": "false", "autocapitalize": "off", "autocomplete": "off", "class": "code"}
SCRIPT = "#!/bin/bash\n"


def _project_name(project: Project) -> str:
    return f"{project.tenant.name}: {project.name}"


class RequestForm(forms.Form):
    """A wish for one spec. What is rarely needed is under "More", and all of it has a default."""

    project = forms.ModelChoiceField(Project.objects.none(), empty_label=None)
    count = forms.IntegerField(min_value=1, max_value=MOST_UNITS, initial=1, label=_("How many units"))
    time_limit = ScaledField(
        scale=HOUR, min_value=0, max_digits=9, decimal_places=3, label=_("For at most, hours"),
        help_text=_("The cards come back when it ends by itself, when you release it, or then."),
    )  # fmt: skip
    launch = forms.ChoiceField(
        choices=[
            (Launch.CARDS, _("Just the cards")), (Launch.SCRIPT, _("A batch script")),
            (Launch.IMAGE, _("A container image")),
        ],
        initial=Launch.CARDS, widget=forms.RadioSelect, label=_("What to start"),
    )  # fmt: skip
    script = forms.CharField(
        required=False, strip=False, initial=SCRIPT, label=_("Script"),
        widget=forms.Textarea(attrs={**_CODE, "rows": 8}),
        help_text=_("It runs once, on the first node. Cards and places are taken from here, not from #SBATCH lines."),
    )  # fmt: skip
    image = forms.CharField(
        required=False, max_length=500, label=_("Image"),
        help_text=_("For example registry.example.org/team/train:1.4"),
        widget=forms.TextInput(attrs=_CODE),
    )  # fmt: skip
    command = forms.CharField(
        required=False, max_length=4000, label=_("Command"), widget=forms.TextInput(attrs=_CODE),
        help_text=_("As in a shell, without pipes. Empty: what the image starts by itself."),
    )  # fmt: skip
    name = forms.CharField(required=False, max_length=100, help_text=_("How you will find it again."))
    pool = forms.ModelChoiceField(Pool.objects.none(), required=False, empty_label=_("The first that offers it"))
    priority = forms.ModelChoiceField(PriorityClass.objects.none(), required=False, label=_("Priority class"))
    near = forms.ChoiceField(required=False, label=_("Units stand in one"))
    not_before = MomentField(required=False, label=_("Not before"))
    environment = forms.CharField(
        required=False, strip=False, widget=forms.Textarea(attrs={**_CODE, "rows": 3}),
        help_text=_("Variables, one NAME=value a line."),
    )  # fmt: skip
    held = forms.BooleanField(required=False, label=_("Keep it on hold until I resume it"))
    key = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)

    MAIN = ("project", "count", "time_limit", "launch", "script", "image", "command")
    MORE = ("name", "pool", "priority", "near", "not_before", "environment", "held")
    DEPENDENT = {"script": f"launch={Launch.SCRIPT}", "image": f"launch={Launch.IMAGE}",
                 "command": f"launch={Launch.IMAGE}"}  # fmt: skip

    def __init__(self, *args: Any, user: User, spec: Spec, pools: list[Pool], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.spec = spec
        self._choose("project", requestable_projects(user).order_by("tenant__name", "name"))
        self._choose("pool", Pool.objects.filter(pk__in=[pool.pk for pool in pools]).order_by("rank", "name"))
        self._choose("priority", PriorityClass.objects.visible_to(user))
        project, priority, near = self.fields["project"], self.fields["priority"], self.fields["near"]
        project.label_from_instance = _project_name  # type: ignore[attr-defined]
        priority.empty_label = str(_("The usual one"))  # type: ignore[attr-defined]
        near.choices = [("", _("%(place)s, as the spec says") % {"place": spec.get_near_display()}), *Near.choices]  # type: ignore[attr-defined]
        moment = self.fields["not_before"]
        assert isinstance(moment, MomentField)
        moment.in_zone(zone_of(user))
        for name in ("script", "image"):  # shown only where they are
            self.fields[name].needed = True  # type: ignore[attr-defined]
        longest = pools[0].longest_run if pools else None
        self.fields["time_limit"].initial = min(USUAL, longest or USUAL)

    def _choose(self, name: str, rows: Any) -> None:
        self.fields[name].queryset = rows  # type: ignore[attr-defined]

    def clean_time_limit(self) -> int:
        """Seconds, within what any pool gives."""
        seconds = int(self.cleaned_data["time_limit"])
        if not SHORTEST <= seconds <= LONGEST:
            raise forms.ValidationError(_("Give a time from a minute to a year."))
        return seconds

    def clean_command(self) -> list[str]:
        """The words of a command."""
        try:
            return shlex.split(self.cleaned_data["command"])
        except ValueError as error:
            raise forms.ValidationError(_("It can't be read as a command: %(why)s.") % {"why": error}) from None

    def clean_environment(self) -> dict[str, str]:
        """Variables by name."""
        found = {}
        for line in self.cleaned_data["environment"].splitlines():
            name, separator, value = line.partition("=")
            if not line.strip():
                continue
            if not separator:
                raise forms.ValidationError(_("%(line)s: write NAME=value.") % {"line": line.strip()[:60]})
            found[name.strip()] = value
        return found

    def clean(self) -> dict[str, Any]:
        """What belongs to another way of launching is hidden on the page, so it is left out."""
        data = super().clean() or {}
        launch = data.get("launch")
        if launch == Launch.SCRIPT and "script" in data:
            data["script"] = data["script"].replace("\r\n", "\n")
            if data["script"].strip() in ("", SCRIPT.strip()):
                self.add_error("script", str(_("Write what is to run, beginning with #!/bin/bash.")))
        if launch == Launch.IMAGE and not data.get("image"):
            self.add_error("image", str(_("Name the image that is to be started.")))
        return data

    def work(self) -> Work:
        """What is to be started."""
        data = self.cleaned_data
        launch = data["launch"]
        return Work(
            launch=launch,
            script=data["script"] if launch == Launch.SCRIPT else "",
            image=data["image"] if launch == Launch.IMAGE else "",
            command=data["command"] if launch == Launch.IMAGE else [],
            environment=data["environment"],
        )

    def values(self) -> dict[str, Any]:
        """The rest of what the service takes."""
        names = ("project", "count", "time_limit", "name", "pool", "priority", "near", "not_before", "held")
        return {name: self.cleaned_data[name] for name in names}

    @property
    def more_has_errors(self) -> bool:
        """Whether something under "More" has to be mended, so that it has to be open."""
        return any(name in self.errors for name in self.MORE)


class ExtensionForm(forms.Form):
    """More time, and what for."""

    seconds = ScaledField(scale=HOUR, min_value=0, max_digits=9, decimal_places=3, label=_("More time, hours"),
                          initial=HOUR)  # fmt: skip
    justification = forms.CharField(
        max_length=400, label=_("What the time is needed for"), help_text=_("Whoever decides reads this.")
    )


class WhyForm(forms.Form):
    """An act that says why where there is something to say."""

    why = forms.CharField(max_length=300, required=False, label=_("Why"))


class NeededWhyForm(forms.Form):
    """An act that needs its reason."""

    why = forms.CharField(max_length=300, label=_("Why"), help_text=_("It stays in the history of the request."))


class MoveForm(NeededWhyForm):
    """A request's new place: before another of the same queue, or at the end."""

    before = forms.ChoiceField(required=False, label=_("Put it before"))
    field_order = ["before", "why"]

    def __init__(self, *args: Any, others: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["before"].needed = True  # type: ignore[attr-defined] # to the end is a choice as well
        self.fields["before"].choices = [*others, ("", _("Nothing: the end of the queue"))]  # type: ignore[attr-defined]

    @property
    def chosen(self) -> UUID | None:
        """The request that it goes before; None for the end."""
        found = self.cleaned_data["before"]
        return UUID(found) if found else None
