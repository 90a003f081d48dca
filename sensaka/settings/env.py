"""Typed readers of the environment. A missing or senseless value stops the start with one clear line.

Every NAME may also be given as NAME_FILE, the path of a file that holds the value (container secrets).
"""

import os
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured


def text(name: str, default: str | None = None) -> str:
    """The value of NAME, or of the file that NAME_FILE names; ImproperlyConfigured when neither is set."""
    value = os.environ.get(name)
    if value is None and (path := os.environ.get(f"{name}_FILE")):
        try:
            value = Path(path).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ImproperlyConfigured(f"{name}_FILE={path}: can't be read ({error.strerror})") from None
    if value is None or value == "":
        if default is None:
            raise ImproperlyConfigured(f"{name} is not set: set it in the environment (see README, Settings)")
        return default
    return value


def boolean(name: str, default: bool) -> bool:
    """True for 1/true/yes/on, False for 0/false/no/off."""
    value = text(name, "true" if default else "false").lower()
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name}={value!r}: use true or false")


def integer(name: str, default: int, *, low: int, high: int) -> int:
    """A whole number in [low, high]."""
    value = text(name, str(default))
    if not value.lstrip("-").isdigit() or not low <= int(value) <= high:
        raise ImproperlyConfigured(f"{name}={value!r}: use a whole number from {low} to {high}")
    return int(value)


def words(name: str, default: list[str]) -> list[str]:
    """A comma-separated list without empty entries."""
    return [word.strip() for word in text(name, ",".join(default) or ",").split(",") if word.strip()]


def database(name: str, default: str) -> dict[str, Any]:
    """postgresql://user:password@host:port/name?option=value as Django's settings; host may be a folder."""
    url = urlsplit(text(name, default))
    if url.scheme not in {"postgresql", "postgres"} or not url.path.strip("/"):
        raise ImproperlyConfigured(f"{name}: use postgresql://user:password@host:5432/name")
    options = dict(parse_qsl(url.query))
    host = options.pop("host", None) or unquote(url.hostname or "")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(url.path.strip("/")),
        "USER": unquote(url.username or ""),
        "PASSWORD": unquote(url.password or ""),
        "HOST": host,
        "PORT": str(url.port or ""),
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": options,
    }
