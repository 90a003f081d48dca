"""The telemetry endpoint alone, as sensaka/asgi.py mounts it, so that nothing else is measured with it."""

import os
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sensaka.settings.dev")
django.setup()

from inventory import ingest  # noqa: E402 - needs Django set up


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """HTTP only; the benchmark's server needs no lifespan."""
    if scope["type"] == "http":
        await ingest.application(scope, receive, send)
