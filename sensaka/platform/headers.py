"""Headers that tell the browser what a page of ours may do."""

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        # bars, charts and htmx set style attributes; a style can't run anything
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src 'self' data:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
"""Only files of our own run: text that came from a device and slipped through unescaped does not."""

PERMISSIONS = "camera=(), microphone=(), geolocation=(), payment=(), usb=()"

Respond = Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]


class PolicyMiddleware:
    """Sets Content-Security-Policy and Permissions-Policy, and keeps what is not a static file out of caches."""

    sync_capable = True
    async_capable = True

    def __init__(self, respond: Respond) -> None:
        self.respond = respond
        self.is_async = iscoroutinefunction(respond)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        if self.is_async:
            return self._later(request)
        response = self.respond(request)
        assert isinstance(response, HttpResponseBase)
        return _marked(request, response)

    async def _later(self, request: HttpRequest) -> HttpResponseBase:
        answer = self.respond(request)
        assert isinstance(answer, Awaitable)
        return _marked(request, await answer)


def _marked(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    response.headers.setdefault("Content-Security-Policy", POLICY)
    response.headers.setdefault("Permissions-Policy", PERMISSIONS)
    if isinstance(response, HttpResponse):
        # who signs out must not leave pages, passwords shown once least of all, behind the browser's back button
        response.headers.setdefault("Cache-Control", "private, no-store")
    return response
