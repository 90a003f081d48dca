"""Takes out what lies outside the bounds of the contract, so that the server need not refuse the rest with it.

A driver may hand on what a device said without looking (a utilization of 101 %): decoding checks bounds, making a
struct does not.
"""

from typing import TypeVar

import msgspec
from msgspec import Struct

S = TypeVar("S", bound=Struct)


def bounded(item: S) -> tuple[S, tuple[str, ...]]:
    """The item without the fields that its own type would not decode, and the names of those.

    A required field can't be left out; with a bad one the item comes back as it was.
    """
    kind = type(item)
    raw = msgspec.to_builtins(item)
    if _decodes(raw, kind):
        return item, ()
    required = {field.name for field in msgspec.structs.fields(kind) if field.required}
    base = {name: raw[name] for name in required}
    bad = tuple(name for name in raw if name not in required and not _decodes(base | {name: raw[name]}, kind))
    try:
        return msgspec.convert({name: value for name, value in raw.items() if name not in bad}, kind), bad
    except msgspec.ValidationError:
        return item, ()


def _decodes(raw: object, kind: type[Struct]) -> bool:
    try:
        msgspec.convert(raw, kind)
    except msgspec.ValidationError:
        return False
    return True
