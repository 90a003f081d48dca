"""Text from JSON that can be passed on. Pure."""

import json
import re
from typing import Any

_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")


def storable(value: Any, source: str) -> Any:
    r"""What `json` made of `source`, with "?" for halves of surrogate pairs.

    JSON may spell such a half ("\ud800") and Python takes it, but neither UTF-8 nor PostgreSQL can hold it.
    """
    if not _HALF_PAIR.search(source):
        return value
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
