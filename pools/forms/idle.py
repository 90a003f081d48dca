"""Forms about idle cards: more time, leaving them, and what is spared."""

from datetime import datetime
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from pools.forms.base import MomentField, ScaledField, zone_of
from pools.models import Project, Request, Spec
from pools.rules.lifecycle import ENDED
from sensaka.identity.models import User

HOUR = 3600


class TimeForm(forms.Form):
    """The owner's wish to keep idle cards."""

    seconds = ScaledField(
        scale=HOUR, min_value=0, max_digits=9, decimal_places=3, label=_("For how long, hours"), initial=4 * HOUR
    )
    justification = forms.CharField(
        max_length=400, label=_("What they are kept for"), help_text=_("The operator who decides reads this.")
    )


class LeaveForm(forms.Form):
    """An operator lets idle cards be."""

    seconds = ScaledField(
        scale=HOUR, min_value=0, max_digits=9, decimal_places=3, label=_("For how long, hours"), initial=4 * HOUR
    )
    why = forms.CharField(max_length=300, label=_("Why"), help_text=_("Their owner reads this."))


class MayWhyForm(forms.Form):
    """A reason where there is one."""

    why = forms.CharField(max_length=300, required=False, label=_("Why"))


class MustWhyForm(forms.Form):
    """A reason that stands in the journal."""

    why = forms.CharField(
        max_length=300, label=_("Why"), help_text=_("It stands in the journal; their owner reads it.")
    )


_KINDS = (("project", _("A project")), ("spec", _("A spec")), ("request", _("One request")))


def _project_name(project: Project) -> str:
    return f"{project.tenant.name}: {project.name}"


class ExemptionForm(forms.Form):
    """What is left alone though idle, why and until when."""

    kind = forms.ChoiceField(choices=_KINDS, label=_("What is spared"))
    project = forms.ModelChoiceField(
        Project.objects.select_related("tenant").order_by("tenant__name", "name"), required=False,
        empty_label=_("Choose a project"),
    )  # fmt: skip
    spec = forms.ModelChoiceField(Spec.objects.order_by("name"), required=False, empty_label=_("Choose a spec"))
    request = forms.ModelChoiceField(
        Request.objects.exclude(state__in=sorted(ENDED)).select_related("spec").order_by("-submitted_at"),
        required=False, empty_label=_("Choose a request"),
    )  # fmt: skip
    until = MomentField(label=_("Until"))
    reason = forms.CharField(max_length=400, label=_("Why"))

    DEPENDENT = {"project": "kind=project", "spec": "kind=spec", "request": "kind=request"}

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        project, until = self.fields["project"], self.fields["until"]
        assert isinstance(project, forms.ModelChoiceField)
        assert isinstance(until, MomentField)
        project.label_from_instance = _project_name  # type: ignore[method-assign,assignment]
        until.in_zone(zone_of(user))

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        kind = data.get("kind")
        if kind and not data.get(kind) and kind not in self.errors:
            self.add_error(kind, str(_("Say which one.")))
        return data

    @property
    def target(self) -> Project | Spec | Request:
        """What was chosen."""
        found: Project | Spec | Request = self.cleaned_data[self.cleaned_data["kind"]]
        return found

    @property
    def until_when(self) -> datetime:
        """The end."""
        found: datetime = self.cleaned_data["until"]
        return found
