"""The real agent against the real doors for enrolment and reports (I3, I4)."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.test import override_settings
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from inventory.models import Agent, Card, Node, Site
from inventory.services.agents import create_enrolment_token, revoke_agent
from tests.inventory.agent.doubles import card
from tests.inventory.agent.test_command_line import Node as Machine
from tests.inventory.agent.test_command_line import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.urls("tests.inventory.agent.addresses")]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    found = Machine(tmp_path)
    yield found
    for process in found.started:
        process.kill()
        process.wait(10)


@override_settings(DEBUG=False)
def test_enrol_check_and_report(machine: Machine, live_server: LiveServer) -> None:
    site = Site.objects.create(name="Edge")
    from_bmc = Node.objects.create(site=site, name="S1", system_serial="S1", state="enrolled")
    _, token = create_enrolment_token(
        name="install", site=site, expires_at=timezone.now() + timedelta(hours=1), actor=None
    )
    machine.token.write_text(token)
    done = machine.enrol(live_server.url)
    assert done.returncode == 0, done.stderr
    agent = Agent.objects.get()
    assert agent.node_id == from_bmc.pk
    assert agent.node.state == "active"

    checked = machine.call("check")
    assert "accepted, this is node" in checked.stdout
    assert checked.returncode == 0, checked.stdout

    machine.run()
    until(lambda: Card.objects.count() == 2)
    assert set(Card.objects.values_list("uuid", flat=True)) == {card(1).uuid, card(2).uuid}
    assert set(Card.objects.values_list("node", flat=True)) == {from_bmc.pk}
    until(lambda: Agent.objects.get().cards_seen == 2)
    assert Agent.objects.get().version == "0.1.0"
    assert Agent.objects.get().simulated

    revoke_agent(agent=agent, actor=None)
    checked = machine.call("check")
    assert "unknown or was revoked" in checked.stdout
    assert checked.returncode == 1

    again = machine.enrol(live_server.url)
    assert (again.returncode, "as often as it may" in again.stderr) == (1, True)
