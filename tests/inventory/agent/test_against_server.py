"""The real agent against the real doors: enrolment, reports and samples, all the way into the tables (I3, I4)."""

import asyncio
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import uvicorn
from django.conf import settings
from django.db import connection, connections
from django.utils import timezone

from inventory import ingest
from inventory.models import Agent, Card, Node, Site
from inventory.services.agents import create_enrolment_token, revoke_agent
from inventory.services.partitions import make_partitions
from sensaka.asgi import application
from tests.inventory.agent.doubles import card
from tests.inventory.agent.test_command_line import Node as Machine
from tests.inventory.agent.test_command_line import until

pytestmark = pytest.mark.django_db(transaction=True, available_apps=settings.INSTALLED_APPS)


class Served(threading.Thread):
    """The product's ASGI application on a loopback port."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        config = uvicorn.Config(
            application, host="127.0.0.1", port=0, log_level="error", lifespan="off", timeout_graceful_shutdown=2
        )
        self.server = uvicorn.Server(config)

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        try:
            await self.server.serve()
        finally:
            await ingest.application.close()
            connections.close_all()

    @property
    def url(self) -> str:
        (listening,) = self.server.servers[0].sockets
        return f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture
def url(transactional_db: None) -> Iterator[str]:
    thread = Served()
    thread.start()
    until(lambda: thread.server.started)
    yield thread.url
    thread.server.should_exit = True
    thread.join(15)
    assert not thread.is_alive()
    with connection.cursor() as cursor:  # tables that Django does not know
        cursor.execute("TRUNCATE inventory_sample, inventory_late")


@pytest.fixture
def machine(tmp_path: Path, url: str) -> Iterator[Machine]:
    """Depends on the server, so that the agent ends before the server does."""
    found = Machine(tmp_path)
    yield found
    for process in found.started:
        process.kill()
        process.wait(10)


def stored() -> dict[str, int]:
    """How many samples of each card are in the table."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT card.uuid, count(*), count(DISTINCT ts) FROM inventory_sample AS sample "
            "JOIN inventory_card AS card USING (series) GROUP BY card.uuid"
        )
        rows = cursor.fetchall()
    assert all(count == distinct for _, count, distinct in rows)
    return {uuid: count for uuid, count, _ in rows}


def test_from_a_token_to_samples_in_the_table(machine: Machine, url: str) -> None:
    site = Site.objects.create(name="Edge")
    from_bmc = Node.objects.create(site=site, name="S1", system_serial="S1", state="enrolled")
    make_partitions()
    _, token = create_enrolment_token(
        name="install", site=site, expires_at=timezone.now() + timedelta(hours=1), actor=None
    )
    machine.token.write_text(token)
    done = machine.enrol(url)
    assert done.returncode == 0, done.stderr
    agent = Agent.objects.get()
    assert agent.node_id == from_bmc.pk
    assert agent.node.state == "active"

    checked = machine.call("check")
    assert "accepted, this is node" in checked.stdout
    assert checked.returncode == 0, checked.stdout

    config = machine.config.read_text()
    machine.config.write_text(config + "interval = 1\n")
    machine.run()
    until(lambda: Card.objects.count() == 2)
    assert set(Card.objects.values_list("uuid", flat=True)) == {card(1).uuid, card(2).uuid}
    assert set(Card.objects.values_list("node", flat=True)) == {from_bmc.pk}
    until(lambda: Agent.objects.get().cards_seen == 2)
    until(lambda: min(stored().values(), default=0) >= 3)
    assert set(stored()) == {card(1).uuid, card(2).uuid}
    assert (Agent.objects.get().version, Agent.objects.get().simulated) == ("0.1.0", True)

    revoke_agent(agent=agent, actor=None)
    checked = machine.call("check")
    assert "unknown or was revoked" in checked.stdout
    assert checked.returncode == 1

    again = machine.enrol(url)
    assert (again.returncode, "as often as it may" in again.stderr) == (1, True)
