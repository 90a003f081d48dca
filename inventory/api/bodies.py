"""Bodies that msgspec reads straight into a struct: bounded, and refused clearly where they can't be used."""

import re
from typing import TypeVar

import msgspec
from django.core.exceptions import RequestDataTooBig
from django.http import UnreadablePostError
from rest_framework import exceptions, status
from rest_framework.request import Request

from sensaka.kernel.errors import InvalidInput

LARGEST_BODY = 1_000_000  # bytes; a node of 16 cards with 7 slices each and 1,000 processes takes a third of it
# JSON's only spelling of NUL, which no text column can hold; an even number of backslashes before it means text.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
T = TypeVar("T")


class TooLarge(exceptions.APIException):
    """The body is larger than any node's report."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "too_large"
    default_detail = f"the body is larger than {LARGEST_BODY} bytes"


def decoded(request: Request, kind: type[T]) -> T:
    """The body as `kind`. Raises UnsupportedMediaType, TooLarge, ParseError, and InvalidInput with the path."""
    body = _body(request)
    media_type = (request.content_type or "").partition(";")[0].strip().lower()
    if body and media_type != "application/json":
        raise exceptions.UnsupportedMediaType(media_type or "none")
    try:
        found = msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise InvalidInput(str(error)) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise exceptions.ParseError(f"the body is not usable JSON: {error}") from error
    if _NUL.search(body):
        raise InvalidInput("a text contains the character NUL (\\u0000), which can't be stored")
    return found


def _body(request: Request) -> bytes:
    length = str(request.META.get("CONTENT_LENGTH") or "0")
    if not length.isdigit() or int(length) > LARGEST_BODY:
        raise TooLarge
    try:
        body: bytes = request.body
    except RequestDataTooBig as error:
        raise TooLarge from error
    except UnreadablePostError as error:
        raise exceptions.ParseError("the body ended early") from error
    if len(body) > LARGEST_BODY:
        raise TooLarge
    return body
