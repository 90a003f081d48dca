"""What an agent posts, and how a body is read without letting it grow without bound."""

import zlib
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta, Struct, defstruct

from inventory.ingest.problems import Problem
from inventory.observations import CardValues, Name
from inventory.rules.activity import MAX_INTERVAL
from inventory.services.sample_rows import ABSENT

MAX_BODY = 1_000_000
"""Bytes of a post as sent; an agent's batch of 2,000 samples with every field is below."""

MAX_DECOMPRESSED = 8_000_000
"""Bytes of a post after decompression."""

MAX_SAMPLES = 20_000


class _Addressed(Struct, frozen=True, kw_only=True):
    """What a sample says beside its values."""

    card: Name
    sampled_at: Annotated[datetime, Meta(tz=True)]


if TYPE_CHECKING:

    class TelemetrySample(_Addressed, CardValues, frozen=True, kw_only=True):
        """As it looks from outside."""

else:
    # The fields of CardValues first and absent ones as in a packed row: a post is then packed without a look at them.
    TelemetrySample = defstruct(
        "TelemetrySample",
        [
            *(
                (one.name, one.type, absent)
                for one, absent in zip(msgspec.structs.fields(CardValues), ABSENT, strict=True)
            ),
            *((one.name, one.type) for one in msgspec.structs.fields(_Addressed)),
        ],
        frozen=True,
        kw_only=True,
        gc=False,  # holds no containers, so the garbage collector need not walk it
    )
    TelemetrySample.__doc__ = """One sample: `card` is the UUID that the device gives a card or slice."""


class Telemetry(Struct, frozen=True, kw_only=True):
    """A batch of one node, sampled every `interval` seconds."""

    interval: Annotated[int, Meta(ge=1, le=MAX_INTERVAL)]
    samples: Annotated[list[TelemetrySample], Meta(max_length=MAX_SAMPLES)]


_decoder = msgspec.json.Decoder(Telemetry)


def decode(body: bytes) -> Telemetry:
    """The batch in a JSON body; Problem 400 for what is no JSON, 422 for what is not this shape."""
    try:
        return _decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Problem(422, "invalid", str(error)) from None
    except msgspec.DecodeError as error:
        raise Problem(400, "malformed", f"the body is not JSON: {error}") from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise Problem(400, "malformed", f"the body is not JSON: {error}") from None


def decompress(body: bytes, encoding: bytes) -> bytes:
    """Undo Content-Encoding (gzip or identity); Problem 415 for others, 413 for what grows too large."""
    if encoding in (b"", b"identity"):
        return body
    if encoding != b"gzip":
        raise Problem(415, "encoding", "send the body as it is or with Content-Encoding: gzip")
    inflater = zlib.decompressobj(wbits=31)
    try:
        plain = inflater.decompress(body, MAX_DECOMPRESSED + 1)
    except zlib.error as error:
        raise Problem(400, "malformed", f"the body is not gzip: {error}") from None
    if len(plain) > MAX_DECOMPRESSED:
        raise Problem(413, "too_large", f"at most {MAX_DECOMPRESSED} bytes after decompression")
    if not inflater.eof or inflater.unused_data:
        raise Problem(400, "malformed", "the body is not one whole gzip member")
    return plain
