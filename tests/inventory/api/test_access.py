"""Who may do what over REST (X2, X3): anonymous nobody, members nothing, auditors read, operators change."""

from datetime import timedelta

import pytest
from django.urls import get_resolver
from django.utils import timezone
from rest_framework.test import APIClient

from inventory.api.urls import router
from inventory.models import Site
from sensaka.identity.models import Role, Scope, User
from sensaka.identity.services import create_token

LISTS = sorted(f"/api/v1/{prefix}/" for prefix, _view, _name in router.registry)


def test_there_is_something_to_protect() -> None:
    assert len(LISTS) >= 14
    assert get_resolver().resolve("/api/v1/accelerators/")


@pytest.mark.parametrize("path", [*LISTS, "/api/v1/counts/", "/api/v1/tokens/"])
def test_an_anonymous_caller_gets_401_and_a_problem(db: None, path: str) -> None:
    answer = APIClient().get(path)
    assert answer.status_code == 401
    assert answer["Content-Type"].startswith("application/problem+json")
    assert answer.json()["status"] == 401


@pytest.mark.parametrize("path", [*LISTS, "/api/v1/counts/"])
def test_a_member_sees_no_inventory(member: APIClient, path: str) -> None:
    answer = member.get(path)
    assert answer.status_code == 403
    assert answer.json()["code"] == "permission_denied"


@pytest.mark.parametrize("path", [path for path in LISTS if path != "/api/v1/enrolment-tokens/"])
def test_an_auditor_reads_and_changes_nothing(auditor: APIClient, path: str) -> None:
    assert auditor.get(path).status_code == 200
    assert auditor.post(path, {}).status_code in {403, 405}


def test_a_read_token_of_an_operator_changes_nothing(db: None) -> None:
    user = User.objects.create_user(username="o", password="x" * 20, role=Role.OPERATOR)
    expiry = timezone.now() + timedelta(days=1)
    _row, read = create_token(user=user, name="r", scope=Scope.READ, expires_at=expiry)
    _row, write = create_token(user=user, name="w", scope=Scope.WRITE, expires_at=expiry)
    body = {"name": "Basel"}
    assert APIClient().get("/api/v1/sites/", headers={"Authorization": f"Token {read}"}).status_code == 200
    refused = APIClient().post("/api/v1/sites/", body, headers={"Authorization": f"Token {read}"})
    assert (refused.status_code, Site.objects.count()) == (403, 0)
    made = APIClient().post("/api/v1/sites/", body, headers={"Authorization": f"Token {write}"})
    assert (made.status_code, Site.objects.count()) == (201, 1)


@pytest.mark.parametrize("header", ["Token", "Token a b", "Token \xff\xfe", "Token sk_nonsense", "Bearer x"])
def test_a_senseless_authorization_is_401(db: None, header: str) -> None:
    assert APIClient().get("/api/v1/sites/", headers={"Authorization": header}).status_code == 401


def test_an_expired_token_is_refused(db: None) -> None:
    user = User.objects.create_user(username="o", password="x" * 20, role=Role.OPERATOR)
    _row, token = create_token(
        user=user, name="old", scope=Scope.READ, expires_at=timezone.now() - timedelta(seconds=1)
    )
    assert APIClient().get("/api/v1/sites/", headers={"Authorization": f"Token {token}"}).status_code == 401


def test_tokens_are_stored_hashed_and_shown_once(operator: APIClient) -> None:
    made = operator.post("/api/v1/tokens/", {"name": "ci", "scope": "read", "days": 3})
    assert made.status_code == 201
    token = made.json()["token"]
    listed = operator.get("/api/v1/tokens/").json()["results"]
    assert [row["name"] for row in listed] == ["ci"]
    assert token not in str(listed)
    user = User.objects.get()
    assert token not in str(user.auth_token_set.values())
    assert operator.delete(f"/api/v1/tokens/{listed[0]['id']}/").status_code == 204
    assert APIClient().get("/api/v1/sites/", headers={"Authorization": f"Token {token}"}).status_code == 401


def test_a_token_cannot_make_tokens(db: None) -> None:
    user = User.objects.create_user(username="o", password="x" * 20, role=Role.OPERATOR)
    _row, token = create_token(user=user, name="w", scope=Scope.WRITE, expires_at=timezone.now() + timedelta(days=1))
    answer = APIClient().post("/api/v1/tokens/", {"name": "child"}, headers={"Authorization": f"Token {token}"})
    assert answer.status_code == 403


def test_nobody_sees_somebody_elses_tokens(operator: APIClient, auditor: APIClient) -> None:
    made = operator.post("/api/v1/tokens/", {"name": "mine"}).json()
    assert auditor.get("/api/v1/tokens/").json()["results"] == []
    assert auditor.delete(f"/api/v1/tokens/{made['id']}/").status_code == 404
