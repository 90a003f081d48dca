"""Many hosts: everything comes from the environment, and nothing is guessed."""

from cryptography.fernet import Fernet
from django.core.exceptions import ImproperlyConfigured

from sensaka.settings import env
from sensaka.settings.base import *  # noqa: F403 - the settings modules build on one another
from sensaka.settings.base import redis_settings

SECRET_KEY = env.text("SECRET_KEY")
if len(SECRET_KEY) < 40:
    raise ImproperlyConfigured("SECRET_KEY: use at least 40 random characters")
FIELD_ENCRYPTION_KEYS = env.words("SENSAKA_SECRET_KEYS", [])
if not FIELD_ENCRYPTION_KEYS:
    raise ImproperlyConfigured("SENSAKA_SECRET_KEYS is not set: make one with `manage.py make_key`")
for _key in FIELD_ENCRYPTION_KEYS:
    try:
        Fernet(_key)
    except ValueError:
        raise ImproperlyConfigured("SENSAKA_SECRET_KEYS: each key comes from `manage.py make_key`") from None
DATABASES = {"default": env.database("DATABASE_URL", env.text("DATABASE_URL"))}
globals().update(redis_settings(env.text("REDIS_URL")))

SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
_https = env.boolean("SENSAKA_HTTPS", True)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = _https
SECURE_HSTS_SECONDS = 31_536_000 if _https else 0
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
