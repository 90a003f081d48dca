"""Settings that hold everywhere. dev, test and production differ only in what they must."""

import warnings
from datetime import timedelta
from pathlib import Path

from django.urls import reverse_lazy

from sensaka.settings import env

BASE_DIR = Path(__file__).resolve().parent.parent.parent
VAR_DIR = Path(env.text("SENSAKA_VAR", str(BASE_DIR / "var")))
VERSION = "0.1.0"

SECRET_KEY: str
FIELD_ENCRYPTION_KEYS: list[str]
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS", [])
DEBUG = False
SIMULATED_FLEET = env.boolean("SENSAKA_SIMULATED_FLEET", False)

INSTALLED_APPS = [
    "sensaka.platform",
    "sensaka.identity",
    "inventory",
    "pools",
    "sensaka.live",
    "sensaka.cockpit",
    "sensaka.bench",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django.contrib.humanize",
    "axes",
    "channels",
    "django_filters",
    "django_htmx",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "knox",
    "rest_framework",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "sensaka.platform.headers.PolicyMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.auth.middleware.LoginRequiredMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "sensaka.urls"
ASGI_APPLICATION = "sensaka.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "sensaka.cockpit.context.frame",
            ],
        },
    },
]

DATABASES: dict[str, dict[str, object]]
REDIS_URL: str
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "identity.User"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = reverse_lazy("sign-in")
LOGIN_REDIRECT_URL = reverse_lazy("overview")
LOGOUT_REDIRECT_URL = reverse_lazy("sign-in")

AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_VERBOSE = False
AXES_LOCKOUT_TEMPLATE = "identity/locked.html"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True

STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "static"
ASSETS_DIR = VAR_DIR / "assets"
STATICFILES_DIRS = [BASE_DIR / "static", ("vendor", ASSETS_DIR)]
# WhiteNoise streams small local files from a thread; Django's advice to iterate asynchronously gains nothing there.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")
WHITENOISE_SKIP_COMPRESS_EXTENSIONS = ["map", "png", "webp", "woff", "woff2", "gz", "br", "zip"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "sensaka.identity.authentication.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["sensaka.identity.permissions.InventoryAccess"],
    "DEFAULT_PAGINATION_CLASS": "sensaka.platform.rest.pagination.TimeCursorPagination",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["sensaka.platform.rest.parsers.BoundedJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "sensaka.platform.rest.problems.problem_response",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
    "PAGE_SIZE": 100,
}
REST_KNOX = {
    "TOKEN_MODEL": "identity.ApiToken",
    "AUTH_HEADER_PREFIX": "Token",
    "TOKEN_TTL": timedelta(days=90),
    "TOKEN_PREFIX": "sk_",
}
KNOX_TOKEN_MODEL = "identity.ApiToken"

SPECTACULAR_SETTINGS = {
    "TITLE": "Sensaka",
    "DESCRIPTION": "Every accelerator in one tree: facts, promises, transitions, accounts, verdicts.",
    "VERSION": VERSION,
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "SCHEMA_PATH_PREFIX": r"/api/v1",
    "ENUM_NAME_OVERRIDES": {
        "NodeState": "inventory.models.nodes.NODE_STATES",
        "CardState": "inventory.models.cards.CARD_STATES",
        "DiscoveryState": "inventory.models.collectors.DiscoveryState",
        "RequestState": "pools.models.requests.REQUEST_STATES",
        "ExtensionState": "pools.models.requests.ExtensionState",
        "SharingMode": "pools.models.pools.SharingMode",
        "Mode": "pools.models.tenants.Mode",
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "inventory.api.openapi.add_telemetry",
    ],
}

CELERY_TASK_ACKS_LATE = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_TIME_LIMIT = 600
CELERY_TASK_SOFT_TIME_LIMIT = 540
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULE_FILENAME = str(VAR_DIR / "run" / "beat-schedule")

# Raw samples are kept this long; the writer refuses older ones by name.
RAW_RETENTION = timedelta(days=14)
# Rollups are kept at least this long and dropped by whole partitions: months of 5 minutes, years of hours.
ROLLUP_RETENTION = timedelta(days=env.integer("ROLLUP_DAYS", 3 * 366, low=31, high=36_600))
HOURLY_RETENTION = max(
    ROLLUP_RETENTION, timedelta(days=env.integer("HOURLY_ROLLUP_DAYS", 10 * 366, low=366, high=36_600))
)
# Runs that are over are history that accounts are made of: kept as long as hourly rollups. A node that its scheduler
# no longer lists tells which node of ours a late record of a run means, so it is needed for weeks.
JOB_RETENTION = timedelta(days=env.integer("JOB_DAYS", 10 * 366, low=31, high=36_600))
GONE_SCHEDULER_NODE_RETENTION = timedelta(days=90)

SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{levelname:<7} {name}: {message}", "style": "{"}},
    "filters": {"without_trace": {"()": "sensaka.platform.logs.WithoutTrace"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["without_trace"]}},
    "root": {"handlers": ["console"], "level": env.text("LOG_LEVEL", "INFO").upper()},
    "loggers": {name: {"level": "WARNING"} for name in ("axes", "httpx", "httpcore")},
}


def redis_settings(url: str) -> dict[str, object]:
    """What Celery and Channels need to talk to the Redis at `url` (redis://, rediss://, unix://)."""
    broker = url.replace("unix://", "redis+socket://", 1) if url.startswith("unix://") else url
    return {
        "REDIS_URL": url,
        "CELERY_BROKER_URL": broker,
        # pub/sub keeps no state in Redis: a wiped Redis costs no subscription
        "CHANNEL_LAYERS": {
            "default": {
                "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
                "CONFIG": {"hosts": [url], "prefix": "sensaka"},
            }
        },
        "CACHES": {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": url}},
    }
