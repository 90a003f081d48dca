"""One machine: embedded PostgreSQL and Redis unless DATABASE_URL and REDIS_URL say otherwise."""

from sensaka import embedded
from sensaka.settings import env
from sensaka.settings.base import *  # noqa: F403 - the settings modules build on one another
from sensaka.settings.base import VAR_DIR, redis_settings

_layout = embedded.Layout(VAR_DIR)
_secrets = embedded.secrets(VAR_DIR)

SECRET_KEY = env.text("SECRET_KEY", _secrets.secret_key)
FIELD_ENCRYPTION_KEYS = env.words("SENSAKA_SECRET_KEYS", [_secrets.encryption_key])
DATABASES = {"default": env.database("DATABASE_URL", _layout.database_url)}
globals().update(redis_settings(env.text("REDIS_URL", _layout.redis_url)))
