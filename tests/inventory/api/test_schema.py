"""Every operation of the OpenAPI document answers what it promises and never 500 (X2)."""

import os
from collections.abc import Iterator
from datetime import timedelta

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error

from sensaka.identity.models import Role, Scope, User
from sensaka.identity.services import create_token

schema = schemathesis.openapi.from_dict(SchemaGenerator().get_schema(request=None, public=True))
schema.app = get_wsgi_application()

# more in the long trials: SCHEMA_EXAMPLES=300 make soak
EXAMPLES = int(os.environ.get("SCHEMA_EXAMPLES", "8"))


@pytest.fixture(autouse=True)
def one_connection() -> Iterator[None]:
    """A real WSGI request ends with closing the connection that holds the test's transaction; not here."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.fixture
def token(db: None) -> str:
    user = User.objects.create_user(username="fuzz", password="x" * 20, role=Role.OPERATOR)
    _row, plain = create_token(user=user, name="fuzz", scope=Scope.WRITE, expires_at=timezone.now() + timedelta(days=1))
    return plain


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_no_operation_answers_500(case: Case, token: str) -> None:
    headers = {"Authorization": f"Token {token}"}
    with transaction.atomic():  # an answer of 409 leaves the savepoint broken, not the test's transaction
        response = case.call(headers=headers)
    case.validate_response(response, checks=[not_a_server_error])
    if response.status_code >= 400 and response.content:
        assert response.headers["content-type"][0].startswith("application/problem+json")


def test_the_document_covers_every_resource() -> None:
    paths = {operation.ok().path for operation in schema.get_all_operations()}
    for resource in (
        "sites", "clusters", "racks", "nodes", "accelerators", "accelerator-models", "telemetry", "journal", "bmcs",
        "exporters", "agents", "discoveries", "enrolment-tokens", "credentials", "counts", "tokens",
    ):  # fmt: skip
        assert any(path.startswith(f"/api/v1/{resource}/") for path in paths), resource
