"""Forms whose rows are written by a service: they check and give values, and save nothing by themselves."""

from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.utils.translation import gettext_lazy as _

from sensaka.identity.models import User
from sensaka.kernel.errors import Conflict, InvalidInput

GIB = 1024**3


class RowForm(forms.ModelForm):  # type: ignore[type-arg]
    """A form of one row. `values` are what the service is given."""

    def values(self) -> dict[str, Any]:
        """Field by field, in the row's units."""
        return dict(self.cleaned_data)

    def save(self, commit: bool = True) -> Any:
        """Services write: a form that saves would leave the journal out."""
        raise NotImplementedError


def refused(form: forms.BaseForm, error: InvalidInput | Conflict) -> None:
    """A service's refusal, beside the field that it names; what was typed stays."""
    field = error.context.get("field")
    message = error.message[:1].upper() + error.message[1:]
    form.add_error(field if isinstance(field, str) and field in form.fields else None, message)


def zone_of(user: User) -> tzinfo:
    """In which zone a person types and reads times in forms: their own, else UTC."""
    return ZoneInfo(user.time_zone) if user.time_zone else UTC


class MomentField(forms.DateTimeField):
    """A date and time of the browser's own picker, in the zone that `in_zone` names."""

    widget = forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M")
    zone: tzinfo = UTC

    def in_zone(self, zone: tzinfo) -> None:
        """Read and show in this zone, and say so."""
        self.zone = zone
        self.help_text = _("In the time zone %(zone)s.") % {"zone": zone}

    def prepare_value(self, value: Any) -> Any:
        """The local wall clock."""
        return value.astimezone(self.zone).replace(tzinfo=None) if isinstance(value, datetime) else value

    def to_python(self, value: Any) -> datetime | None:
        """An aware time."""
        found = super().to_python(value)
        return None if found is None else found.replace(tzinfo=self.zone)


class ScaledField(forms.DecimalField):
    """A number that is typed in a handy unit and stored in a basic one: `scale` basic units make one."""

    def __init__(self, *, scale: int, **options: Any) -> None:
        self.scale = scale
        super().__init__(**options)

    def prepare_value(self, value: Any) -> Any:
        """In the handy unit, without needless zeros."""
        if isinstance(value, (int, float)):
            shown = round(value / self.scale, 3)
            return int(shown) if shown == int(shown) else shown
        return value

    def clean(self, value: Any) -> Any:
        """In the basic unit."""
        found = super().clean(value)
        return None if found is None else int(found * self.scale)


def labels_of(text: str) -> dict[str, str]:
    """Labels, one name=value a line. Raises ValidationError with the line that is none."""
    found = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        name, separator, value = line.partition("=")
        if not separator or not name.strip():
            raise forms.ValidationError(_("%(line)s: write name=value.") % {"line": line.strip()[:60]})
        found[name.strip()] = value.strip()
    return found
