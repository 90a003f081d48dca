"""Every operation of the OpenAPI document answers what it promises and never 500 (X2)."""

import pytest
import schemathesis
from django.core.wsgi import get_wsgi_application
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error

from sensaka.identity.models import Role, User

schema = schemathesis.openapi.from_dict(SchemaGenerator().get_schema(request=None, public=True))
schema.app = get_wsgi_application()

EXAMPLES = 15


@pytest.fixture
def token(db: None) -> str:
    from datetime import timedelta

    from django.utils import timezone

    from sensaka.identity.models import Scope
    from sensaka.identity.services import create_token

    user = User.objects.create_user(username="fuzz", password="x" * 20, role=Role.OPERATOR)
    _row, plain = create_token(
        user=user, name="fuzz", scope=Scope.WRITE, expires_at=timezone.now() + timedelta(days=1)
    )
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
    response = case.call(headers=headers)
    case.validate_response(response, checks=[not_a_server_error])
    if response.status_code >= 400 and response.content:
        assert response.headers["Content-Type"][0].startswith("application/problem+json")


def test_the_document_covers_every_resource() -> None:
    paths = {operation.ok().path for operation in schema.get_all_operations()}
    for resource in (
        "sites", "clusters", "racks", "nodes", "accelerators", "accelerator-models", "telemetry", "journal", "bmcs",
        "exporters", "agents", "discoveries", "enrolment-tokens", "credentials", "counts", "tokens",
    ):  # fmt: skip
        assert any(path.startswith(f"/api/v1/{resource}/") for path in paths), resource
