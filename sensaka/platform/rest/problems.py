"""Errors as application/problem+json (RFC 9457), from REST framework and from our own errors alike."""

import logging
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import IntegrityError
from django.db.models import ProtectedError
from django.http import Http404
from rest_framework import exceptions, status
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response
from rest_framework.views import exception_handler

from sensaka.kernel.errors import Conflict, InvalidInput, NotFound, SensakaError
from sensaka.platform.logs import database_away

logger = logging.getLogger(__name__)

_STATUS_OF = (
    (InvalidInput, status.HTTP_422_UNPROCESSABLE_ENTITY),
    (NotFound, status.HTTP_404_NOT_FOUND),
    (Conflict, status.HTTP_409_CONFLICT),
)
_TITLES = {
    400: "The request can't be understood",
    401: "Sign in or send a token",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    406: "No such format",
    409: "In conflict with the present state",
    413: "Too large",
    415: "Unsupported media type",
    422: "The input can't be used",
    429: "Too many requests",
    503: "Not available just now",
}


class ProblemRenderer(JSONRenderer):
    """Marks an error body as a problem document."""

    media_type = "application/problem+json"
    ensure_ascii = True  # what is refused may hold half a surrogate, which no encoding can write


def problem(code: str, detail: str, *, status_code: int, **extra: object) -> dict[str, object]:
    """The members of a problem document; `code` is stable, `detail` is for people."""
    return {
        "type": "about:blank",
        "title": _TITLES.get(status_code, "Error"),
        "status": status_code,
        "code": code,
        "detail": detail,
        **extra,
    }


def _from_domain(error: SensakaError) -> Response:
    status_code = next((code for kind, code in _STATUS_OF if isinstance(error, kind)), 400)
    extra = {"errors": error.context} if error.context else {}
    return Response(problem(error.code, error.message, status_code=status_code, **extra), status=status_code)


def _translated(error: Exception) -> Exception | Response:
    """Our own and the database's errors as answers; everything else unchanged."""
    if isinstance(error, SensakaError):
        return _from_domain(error)
    if isinstance(error, ProtectedError):
        kinds = sorted({str(held._meta.verbose_name_plural) for held in error.protected_objects})
        detail = f"still used by {', '.join(kinds)}: remove or move those first"
        return Response(problem("in_use", detail, status_code=409), status=409)
    if isinstance(error, IntegrityError):
        logger.info("integrity error answered as conflict: %s", error)
        return Response(problem("conflict", "another row with these values exists", status_code=409), status=409)
    if database_away(error):
        logger.warning("answered 503: %s", str(error).split("\n", 1)[0])
        return Response(
            problem("unavailable", "the database can't be reached; send the same again", status_code=503), status=503
        )
    return error


def problem_response(error: Exception, context: dict[str, Any]) -> Response | None:
    """REST framework's exception handler: every refusal is a problem document."""
    translated = _translated(error)
    response = translated if isinstance(translated, Response) else _from_framework(translated, context)
    if response is not None:
        response.content_type = "application/problem+json"
        request = context.get("request")
        if request is not None:
            request.accepted_renderer = ProblemRenderer()
            request.accepted_media_type = ProblemRenderer.media_type
    return response


def _from_framework(error: Exception, context: dict[str, Any]) -> Response | None:
    response = exception_handler(error, context)
    if response is None:
        return None
    if isinstance(error, exceptions.ValidationError):
        body = problem("invalid_input", "some fields can't be used", status_code=400, errors=response.data)
    else:
        codes = error.get_codes() if isinstance(error, exceptions.APIException) else None
        code = codes if isinstance(codes, str) else None
        if isinstance(error, Http404):
            code = "not_found"
        elif isinstance(error, PermissionDenied):
            code = "permission_denied"
        detail = response.data.get("detail", str(error)) if isinstance(response.data, dict) else str(error)
        body = problem(str(code or "error"), str(detail), status_code=response.status_code)
    response.data = body
    return response
