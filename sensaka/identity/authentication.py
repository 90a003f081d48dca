"""API tokens in `Authorization: Token sk_...`: hashed, expiring, noted when used."""

from datetime import timedelta
from typing import Any

from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from knox.auth import TokenAuthentication as KnoxAuthentication
from rest_framework.exceptions import AuthenticationFailed

from sensaka.identity.models import ApiToken, User

_NOTED_EVERY = timedelta(minutes=1)


class TokenAuthentication(KnoxAuthentication):  # type: ignore[misc] # knox ships no types
    """Knox's look-up; the last use is noted at most once a minute."""

    def authenticate_credentials(self, token: bytes) -> tuple[User, ApiToken]:
        try:
            user, row = super().authenticate_credentials(token)
        except UnicodeDecodeError:
            raise AuthenticationFailed("Invalid token.") from None
        now = timezone.now()
        if row.last_used_at is None or now - row.last_used_at > _NOTED_EVERY:
            ApiToken.objects.filter(pk=row.pk).update(last_used_at=now)
        return user, row


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the OpenAPI document describes the token."""

    target_class = "sensaka.identity.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "apiKey",
            "in": "header",
            "name": "Authorization",
            "description": "`Token sk_...`, made under Settings > API tokens",
        }
