"""Profile, API tokens and users."""

from datetime import timedelta
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.contrib.auth.password_validation import validate_password
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from sensaka.identity.models import Role, Scope, User

_DAYS = ((7, _("7 days")), (30, _("30 days")), (90, _("90 days")), (365, _("1 year")))


def time_zone_field(**options: Any) -> forms.CharField:
    """A text field with every IANA name to choose from."""
    return forms.CharField(max_length=64, widget=forms.TextInput(attrs={"list": "time-zones"}), **options)


def known_time_zone(value: str) -> str:
    """The value when it is an IANA name or empty."""
    if value and value not in available_timezones():
        raise forms.ValidationError(_("Use an IANA name such as Europe/Zurich or UTC."))
    return value


class ProfileForm(forms.ModelForm):  # type: ignore[type-arg]
    """What people set for themselves."""

    time_zone = time_zone_field(required=False, help_text=_("Empty: the zone of the browser."))

    class Meta:
        model = User
        fields = ["first_name", "last_name", "email", "time_zone"]

    def clean_time_zone(self) -> str:
        return known_time_zone(self.cleaned_data["time_zone"])


class TokenForm(forms.Form):
    """A new API token."""

    name = forms.CharField(max_length=100, help_text=_("What uses it, for example backup-script."))
    scope = forms.ChoiceField(choices=Scope.choices, initial=Scope.READ)
    days = forms.TypedChoiceField(label=_("Valid for"), choices=_DAYS, coerce=int, initial=90)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not user.operates:
            self.fields["scope"].choices = [(Scope.READ, Scope.READ.label)]  # type: ignore[attr-defined]

    def expires_at(self) -> Any:
        """When the token ends."""
        return timezone.now() + timedelta(days=self.cleaned_data["days"])


class UserAddForm(forms.Form):
    """A new person; the password is made here and shown once."""

    username = forms.CharField(max_length=150, validators=[UnicodeUsernameValidator()])
    role = forms.ChoiceField(choices=Role.choices, initial=Role.AUDITOR)

    def clean_username(self) -> str:
        name: str = self.cleaned_data["username"]
        if User.objects.filter(username__iexact=name).exists():
            raise forms.ValidationError(_("This name is taken: choose another one."))
        return name


class UserEditForm(forms.ModelForm):  # type: ignore[type-arg]
    """Role and access of a person."""

    class Meta:
        model = User
        fields = ["role", "is_active"]
        labels = {"is_active": _("May sign in")}
        help_texts = {"is_active": ""}

    def __init__(self, *args: Any, acting: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.acting = acting

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if self.instance.pk == self.acting.pk and (data.get("role") != Role.OPERATOR or not data.get("is_active")):
            raise forms.ValidationError(_("You can't take your own access away: another operator has to do it."))
        return data


class PasswordForm(forms.Form):
    """A new password of one's own."""

    current = forms.CharField(
        label=_("Present password"), widget=forms.PasswordInput(attrs={"autocomplete": "current-password"})
    )
    new = forms.CharField(
        label=_("New password"),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("At least 12 characters."),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def clean_current(self) -> str:
        value: str = self.cleaned_data["current"]
        if not self.user.check_password(value):
            raise forms.ValidationError(_("This is not your present password."))
        return value

    def clean_new(self) -> str:
        value: str = self.cleaned_data["new"]
        validate_password(value, self.user)
        return value
