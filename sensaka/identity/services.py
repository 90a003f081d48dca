"""Accounts and tokens: making them."""

import secrets
from datetime import datetime

from django.utils import timezone

from sensaka.identity.models import ApiToken, Role, User


def create_token(*, user: User, name: str, scope: str, expires_at: datetime) -> tuple[ApiToken, str]:
    """A token of `user` and its plain text, which is shown once and stored hashed."""
    row, plain = ApiToken.objects.create(user=user, expiry=expires_at - timezone.now(), name=name, scope=scope)
    return row, plain


def generated_password() -> str:
    """A random password of about 95 bits."""
    return secrets.token_urlsafe(12)


def create_user_with_generated_password(*, username: str, role: Role) -> tuple[User, str]:
    """A person with a random password, returned once in clear."""
    password = generated_password()
    user = User.objects.create_user(username=username, password=password, role=role)
    return user, password
