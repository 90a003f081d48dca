"""The live lines of a sign-in: they end when it does, in every tab of that browser."""

import hashlib
from importlib import import_module
from typing import Any

from channels.auth import get_user
from django.conf import settings

from sensaka.identity.models import User


def group(session_key: str) -> str:
    """The channel group of one sign-in's lines. The key itself is a secret and is not written to Redis."""
    return f"session.{hashlib.sha256(session_key.encode()).hexdigest()[:40]}"


async def signed_in(session_key: str) -> User | None:
    """Whose sign-in this is now; None when it has ended, by signing out or by a new password elsewhere."""
    store: Any = import_module(settings.SESSION_ENGINE).SessionStore
    scope: Any = {"session": store(session_key)}
    user = await get_user(scope)
    return user if isinstance(user, User) else None
