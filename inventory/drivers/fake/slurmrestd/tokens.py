"""JWTs as slurmctld's auth/jwt makes and checks them: HS256, claims `sun` (user), `iat` and `exp`."""

import base64
import hashlib
import hmac
import json


class BadToken(Exception):
    """The token is not accepted; the message says why, for the log."""


def mint(key: bytes, user: str, *, lifespan: int, now: float) -> str:
    """A token for a user, `lifespan` seconds long (scontrol token)."""
    claims = {"exp": int(now) + lifespan, "iat": int(now), "sun": user}
    signed = f"{_encoded({'alg': 'HS256', 'typ': 'JWT'})}.{_encoded(claims)}"
    return f"{signed}.{_text(_signature(key, signed))}"


def user_of(key: bytes, token: str, *, now: float) -> str:
    """Whose token it is. Raises BadToken for one that is no JWT of ours or has ended."""
    signed, _, signature = token.rpartition(".")
    try:
        given = _bytes(signature)
        algorithm = json.loads(_bytes(signed.partition(".")[0]))["alg"]
        claims = json.loads(_bytes(signed.partition(".")[2]))
        user, end = str(claims["sun"]), float(claims["exp"])
    except (ValueError, KeyError, TypeError) as error:
        raise BadToken("this is no token") from error
    if algorithm != "HS256" or not hmac.compare_digest(given, _signature(key, signed)):
        raise BadToken("the signature is wrong")
    if end <= now:
        raise BadToken("the token has ended")
    return user


def _signature(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def _encoded(value: object) -> str:
    return _text(json.dumps(value, separators=(",", ":")).encode())


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
