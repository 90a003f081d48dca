"""JSON bodies, without the inputs that REST framework lets through to a server error."""

import re
from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class BoundedJSONParser(JSONParser):
    """JSON that is nested too deeply to be read, or whose inner texts no column can hold, is malformed.

    The texts of single fields are left to the fields, which name themselves; those inside objects and lists, keys
    above all, are looked at by nobody else before PostgreSQL.
    """

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        try:
            data = super().parse(stream, media_type, parser_context)
            inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
            if any(_unstorable(key) or (not isinstance(value, str) and _unstorable(value)) for key, value in inner):
                raise ParseError("a text contains NUL or half a surrogate, which can't be stored")
        except RecursionError:
            raise ParseError("JSON parse error - nested too deeply") from None
        return data


def _unstorable(value: object) -> bool:
    if isinstance(value, str):
        return _UNSTORABLE.search(value) is not None
    if isinstance(value, dict):
        return any(_unstorable(key) or _unstorable(inner) for key, inner in value.items())
    return isinstance(value, list) and any(_unstorable(inner) for inner in value)
