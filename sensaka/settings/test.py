"""Tests: the services that tests/services.py starts, cheap hashing, no stored files."""

from cryptography.fernet import Fernet

from sensaka.settings import env
from sensaka.settings.base import *  # noqa: F403 - the settings modules build on one another
from sensaka.settings.base import STATIC_ROOT, redis_settings

SECRET_KEY = "only-for-tests-only-for-tests-only-for-tests"
FIELD_ENCRYPTION_KEYS = [Fernet.generate_key().decode()]
DATABASES = {"default": env.database("DATABASE_URL", env.text("DATABASE_URL"))}
globals().update(redis_settings(env.text("REDIS_URL")))
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
CELERY_TASK_ALWAYS_EAGER = True
CELERY_TASK_EAGER_PROPAGATES = True
AXES_ENABLED = False
# whitenoise warns of a folder that is not there, and warnings are errors here
STATIC_ROOT.mkdir(parents=True, exist_ok=True)
