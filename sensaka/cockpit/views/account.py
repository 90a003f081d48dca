"""A person's own pages: profile, password, API tokens."""

from uuid import UUID

from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from sensaka.cockpit.forms.account import PasswordForm, ProfileForm, TokenForm
from sensaka.identity.access import person
from sensaka.identity.models import ApiToken
from sensaka.identity.services import create_token


@sensitive_post_parameters("current", "new")
def profile(request: HttpRequest) -> HttpResponse:
    """Name, time zone, theme, password."""
    user = person(request)
    which = request.POST.get("form", "")
    form = ProfileForm(request.POST if which == "profile" else None, instance=user)
    password = PasswordForm(request.POST if which == "password" else None, user=user)
    if which == "profile" and form.is_valid():
        form.save()
        messages.success(request, _("Your profile is saved."))
        return redirect("profile")
    if which == "password" and password.is_valid():
        user.set_password(password.cleaned_data["new"])
        user.save(update_fields=["password"])
        update_session_auth_hash(request, user)
        messages.success(request, _("Your password is changed; other sessions of yours have ended."))
        return redirect("profile")
    return render(request, "identity/profile.html", {"form": form, "password": password})


@never_cache
def tokens(request: HttpRequest) -> HttpResponse:
    """One's own API tokens; a new one is shown once."""
    user = person(request)
    form = TokenForm(request.POST or None, user=user)
    plain = ""
    if request.method == "POST" and form.is_valid():
        _row, plain = create_token(
            user=user,
            name=form.cleaned_data["name"],
            scope=form.cleaned_data["scope"],
            expires_at=form.expires_at(),
        )
        form = TokenForm(user=user)
    rows = ApiToken.objects.filter(user=user).order_by("-created")
    context = {"form": form, "tokens": rows, "plain": plain, "now": timezone.now()}
    return render(request, "identity/tokens.html", context)


@require_POST
def token_revoke(request: HttpRequest, reference: UUID) -> HttpResponse:
    """End a token of one's own."""
    row = get_object_or_404(ApiToken, user=person(request), reference=reference)
    row.delete()
    messages.success(request, _("The token “%(name)s” no longer works.") % {"name": row.name})
    return redirect("tokens")
