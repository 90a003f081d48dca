"""A POST that is sent again with its Idempotency-Key creates nothing again (X2)."""

from rest_framework.test import APIClient

from inventory.models import EnrolmentToken, Site
from sensaka.platform.models import IdempotencyRecord


def test_the_same_key_and_body_give_the_first_answer(operator: APIClient) -> None:
    headers = {"Idempotency-Key": "k1"}
    first = operator.post("/api/v1/sites/", {"name": "Basel"}, headers=headers)
    second = operator.post("/api/v1/sites/", {"name": "Basel"}, headers=headers)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert second["Idempotent-Replay"] == "true"
    assert Site.objects.count() == 1


def test_the_same_key_for_another_body_is_refused(operator: APIClient) -> None:
    headers = {"Idempotency-Key": "k1"}
    operator.post("/api/v1/sites/", {"name": "Basel"}, headers=headers)
    answer = operator.post("/api/v1/sites/", {"name": "Bern"}, headers=headers)
    assert answer.status_code == 422
    assert Site.objects.count() == 1


def test_a_failed_request_leaves_the_key_free(operator: APIClient) -> None:
    headers = {"Idempotency-Key": "k1"}
    assert operator.post("/api/v1/sites/", {"name": ""}, headers=headers).status_code == 400
    assert operator.post("/api/v1/sites/", {"name": "Basel"}, headers=headers).status_code == 201


def test_a_request_at_work_is_a_conflict(operator: APIClient) -> None:
    headers = {"Idempotency-Key": "k1"}
    operator.post("/api/v1/sites/", {"name": "Basel"}, headers=headers)
    IdempotencyRecord.objects.update(status=None)
    assert operator.post("/api/v1/sites/", {"name": "Basel"}, headers=headers).status_code == 409


def test_a_one_time_secret_in_a_stored_answer_is_encrypted(operator: APIClient, site: Site) -> None:
    body = {"name": "racks", "site": str(site.id)}
    first = operator.post("/api/v1/enrolment-tokens/", body, headers={"Idempotency-Key": "k"})
    again = operator.post("/api/v1/enrolment-tokens/", body, headers={"Idempotency-Key": "k"})
    assert first.json()["token"] == again.json()["token"]
    assert EnrolmentToken.objects.count() == 1
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT body FROM sensaka_platform_idempotencyrecord")
        assert first.json()["token"] not in cursor.fetchone()[0]
