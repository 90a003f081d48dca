"""The browser tests' server: the test settings over the run's own services, with static files from the sources."""

from sensaka.settings import env
from sensaka.settings.base import BASE_DIR, redis_settings
from sensaka.settings.test import *  # noqa: F403 - settings modules build on one another

FIELD_ENCRYPTION_KEYS = [env.text("E2E_ENCRYPTION_KEY")]
globals().update(redis_settings(env.text("REDIS_URL")))
STATICFILES_DIRS = [BASE_DIR / "static", ("vendor", env.text("E2E_ASSETS"))]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = True
SIMULATED_FLEET = True
EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
