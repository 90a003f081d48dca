"""Error pages that say what to do next. The one of 500 needs neither database nor session."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.translation import gettext as _

_API = "/api/"


def _problem(status: int, title: str, code: str) -> JsonResponse:
    body = {"type": "about:blank", "title": title, "status": status, "detail": title, "code": code}
    return JsonResponse(body, status=status, content_type="application/problem+json")


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403: what the role does not allow."""
    if request.path.startswith(_API):
        return _problem(403, "You may not do this.", "permission_denied")
    reason = str(exception) or _("Your role does not allow this.")
    return render(request, "errors/403.html", {"reason": reason}, status=403)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404: the search is the way on."""
    if request.path.startswith(_API):
        return _problem(404, "There is nothing at this address.", "not_found")
    return render(request, "errors/404.html", status=404)


def broken(request: HttpRequest) -> HttpResponse:
    """500: without anything that could break again."""
    if request.path.startswith(_API):
        return _problem(500, "Something went wrong on the server; its log says what.", "internal_error")
    return HttpResponse(render_to_string("errors/500.html"), status=500)
