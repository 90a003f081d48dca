"""Health of the platform for orchestrators and Prometheus. Public, so they say counts and words only."""

import time
from collections.abc import Callable

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import Error as DatabaseError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest
from redis import Redis
from redis.exceptions import RedisError

_PATIENCE = 2.0  # seconds for Redis
_migrated_at: float | None = None


@login_not_required
def healthz(request: HttpRequest) -> HttpResponse:
    """This process answers."""
    return HttpResponse("ok\n", content_type="text/plain")


def _database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return "ok"


def _migrations() -> str:
    """Asked until it was seen complete once: a running process can't fall behind."""
    global _migrated_at
    if _migrated_at is None:
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            return "migrations are missing: run manage.py migrate"
        _migrated_at = time.monotonic()
    return "ok"


def _redis() -> str:
    client = Redis.from_url(settings.REDIS_URL, socket_timeout=_PATIENCE, socket_connect_timeout=_PATIENCE)
    try:
        client.ping()
    finally:
        client.close()
    return "ok"


def _tried(check: Callable[[], str]) -> str:
    try:
        return check()
    except (DatabaseError, RedisError, OSError) as error:
        return f"{type(error).__name__}: not reachable"


@login_not_required
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when the database answers, is migrated, and Redis answers; else 503 with what is wrong."""
    checks = {"database": _tried(_database), "migrations": _tried(_migrations), "redis": _tried(_redis)}
    ready = all(said == "ok" for said in checks.values())
    return JsonResponse({"ready": ready, **checks}, status=200 if ready else 503)


@login_not_required
def metrics(request: HttpRequest) -> HttpResponse:
    """This process and what the apps registered, in Prometheus' text format."""
    return HttpResponse(generate_latest(REGISTRY), content_type=CONTENT_TYPE_LATEST)
