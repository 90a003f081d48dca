"""API tokens in `Authorization: Token sk_...`."""

from knox.auth import TokenAuthentication

__all__ = ["TokenAuthentication"]
