"""When a token ends, read from the token itself. Pure."""

import base64
import binascii
from datetime import UTC, datetime

import msgspec


class _Claims(msgspec.Struct):
    exp: int | float | None = None


def expires_at(token: str) -> datetime | None:
    """When the token ends; None when it doesn't say so or is no JWT (RFC 7519)."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)), type=_Claims)
        return None if claims.exp is None else datetime.fromtimestamp(claims.exp, UTC)
    except (binascii.Error, ValueError, msgspec.DecodeError, OverflowError, OSError):
        return None
