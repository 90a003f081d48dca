"""Agents that enrol at the same moment (I4): a token serves as often as it may, a machine becomes one node."""

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from inventory.models import Agent, EnrolmentToken, Node, Site
from inventory.services.agents import Claim, TokenUsedUp, create_enrolment_token, enrol_agent

pytestmark = pytest.mark.django_db(transaction=True, available_apps=settings.INSTALLED_APPS)

AT_ONCE = 6


def at_once(act: Callable[[int], object]) -> list[object]:
    """What each of several threads got: a result or the error that it raised."""
    gate = threading.Barrier(AT_ONCE, timeout=20)
    results: list[object] = [None] * AT_ONCE

    def one(number: int) -> None:
        try:
            gate.wait()
            results[number] = act(number)
        except Exception as error:
            results[number] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=one, args=(number,), daemon=True) for number in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return results


def token(uses: int = 1) -> str:
    site, _ = Site.objects.get_or_create(name="Central")
    expires = timezone.now() + timedelta(hours=1)
    return create_enrolment_token(name="install", site=site, uses=uses, expires_at=expires, actor=None)[1]


def test_a_one_time_token_enrols_one_of_many() -> None:
    once = token()
    results = at_once(
        lambda number: enrol_agent(token=once, claim=Claim(f"gpu-{number}", f"{number:032x}"), version="0.1.0")
    )
    assert sorted(type(result).__name__ for result in results) == ["TokenUsedUp"] * (AT_ONCE - 1) + ["tuple"]
    assert any(isinstance(result, TokenUsedUp) for result in results)
    assert (Node.objects.count(), Agent.objects.count()) == (1, 1)
    assert EnrolmentToken.objects.get().uses_left == 0


def test_one_machine_that_enrols_with_several_tokens_is_one_node() -> None:
    tokens = [token() for _ in range(AT_ONCE)]
    claim = Claim("gpu-1", "8f3c2b1a0d9e4c7fb6a5948372615040", "S1")
    results = at_once(lambda number: enrol_agent(token=tokens[number], claim=claim, version="0.1.0"))
    assert [result for result in results if isinstance(result, Exception)] == []
    assert (Node.objects.count(), Agent.objects.count()) == (1, 1)


def test_machines_of_one_name_get_numbers() -> None:
    many = token(uses=AT_ONCE)
    results = at_once(lambda number: enrol_agent(token=many, claim=Claim("gpu", f"{number + 1:032x}"), version="0.1.0"))
    assert [result for result in results if isinstance(result, Exception)] == []
    assert set(Node.objects.values_list("name", flat=True)) == {"gpu", *(f"gpu~{n}" for n in range(2, AT_ONCE + 1))}
