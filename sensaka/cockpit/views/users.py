"""Settings: who may sign in, with which role."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from sensaka.cockpit.forms.account import UserAddForm, UserEditForm
from sensaka.identity.access import inventory_page, operator_page, person
from sensaka.identity.models import Role, User
from sensaka.identity.services import create_user_with_generated_password


@inventory_page
def users(request: HttpRequest) -> HttpResponse:
    """Everybody, by name."""
    return render(request, "identity/users.html", {"users": User.objects.order_by("username")})


@never_cache
@operator_page
def user_add(request: HttpRequest) -> HttpResponse:
    """Make a person; the generated password is shown once."""
    form = UserAddForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        user, password = create_user_with_generated_password(
            username=form.cleaned_data["username"], role=Role(form.cleaned_data["role"])
        )
        return render(request, "identity/user_added.html", {"made": user, "password": password})
    context = {"form": form, "title": _("Add a user"), "back": "users", "back_title": _("Users"), "act": _("Add")}
    return render(request, "parts/form_page.html", context)


@operator_page
def user_edit(request: HttpRequest, user_id: UUID) -> HttpResponse:
    """Change the role of a person, or whether they may sign in."""
    user = get_object_or_404(User, pk=user_id)
    form = UserEditForm(request.POST or None, instance=user, acting=person(request))
    if request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, _("%(name)s is saved.") % {"name": user.username})
        return redirect("users")
    context = {"form": form, "title": user.username, "back": "users", "back_title": _("Users"), "act": _("Save")}
    return render(request, "parts/form_page.html", context)
