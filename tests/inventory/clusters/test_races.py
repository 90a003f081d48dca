"""A scheduler's nodes are stored while agents enrol: one record of one machine, and nobody is held up."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from inventory.models import Cluster, Node, SchedulerNode, Site
from inventory.services import nodes as making
from inventory.services.clusters import syncing
from inventory.services.nodes import find_or_create_node
from tests.inventory.clusters.building import Lab, Opener, journal, new_lab

pytestmark = pytest.mark.django_db(transaction=True, available_apps=settings.INSTALLED_APPS)


def enrol(site: Site, cluster: Cluster | None, name: str = "n1", machine: str = "a" * 32) -> Node:
    """As an agent's enrolment does it, committed."""
    return find_or_create_node(
        machine_id=machine, hostname=name, site=site, cluster=cluster, at=timezone.now(), source="agent"
    )


def closing(call: Callable[[], Any]) -> Any:
    """The call's result; the thread's connection is given back."""
    try:
        return call()
    finally:
        connection.close()


def elsewhere(call: Callable[[], Any]) -> Any:
    """The call's result, from another thread with a connection of its own."""

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(closing, call).result(timeout=30)


@pytest.fixture
def lab(opener: Opener) -> Lab:
    return new_lab(opener)


def test_an_agent_that_enrols_while_the_scheduler_is_stored_is_the_schedulers_node(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, cluster, plain, looked = lab.cluster.site, lab.cluster, making.new_ids, threading.Event()

    def first_an_agent(number: int) -> list[UUID]:
        """Called between the look at the names that are taken and the writing."""
        if not looked.is_set():
            looked.set()
            elsewhere(lambda: enrol(site, cluster))
        return plain(number)

    monkeypatch.setattr(making, "new_ids", first_an_agent)
    lab.sync()
    assert lab.connection.error_kind == ""
    enrolled = Node.objects.get(machine_id="a" * 32)
    assert SchedulerNode.objects.get(name="n1").node_id == enrolled.pk
    assert sorted(Node.objects.values_list("name", flat=True)) == ["n1", "n2"]
    assert len(journal("node_enrolled")) == 2


def test_an_agent_that_waits_for_the_schedulers_node_becomes_it(lab: Lab) -> None:
    """The sync has written and not committed: the agent's insert waits for it and must not take another name."""
    site, cluster, started, agent = lab.cluster.site, lab.cluster, threading.Event(), Future[Node]()

    def enrolling() -> None:
        try:
            started.set()
            agent.set_result(enrol(site, cluster))
        except BaseException as error:
            agent.set_exception(error)

    thread = threading.Thread(target=closing, args=[enrolling])
    with transaction.atomic():
        lab.sync()
        thread.start()
        started.wait(10)
        wait_until_waited_for()
    thread.join(30)
    assert agent.result(0).pk == lab.node("n1").pk
    assert sorted(Node.objects.values_list("name", flat=True)) == ["n1", "n2"]


def wait_until_waited_for() -> None:
    """Returns when somebody waits for what this connection has not committed yet."""
    for _ in range(200):
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))")
            if cursor.fetchone()[0]:
                return
        time.sleep(0.05)
    raise AssertionError("nobody waits")


def test_many_agents_enrol_while_clusters_with_the_same_node_names_are_read(opener: Opener) -> None:
    labs = [new_lab(opener, name=name, nodes=8) for name in ("ada", "bob", "eve")]

    def enrolling(number: int) -> list[Node]:
        cluster = labs[number].cluster
        return [enrol(cluster.site, cluster, f"n{n + 1}", f"a{number}{n:030x}") for n in range(8)]

    with ThreadPoolExecutor(4) as pool:
        agents = [pool.submit(closing, partial(enrolling, number)) for number in range(3)]
        tally = pool.submit(closing, partial(syncing.sync_due_clusters, seconds=5)).result(60)
        enrolled = [{node.pk for node in one.result(60)} for one in agents]
    assert (tally.read, tally.broken) == (3, 0)
    for lab in labs:
        lab.sync()
    assert Node.objects.count() == 24
    listed = [set(lab.connection.nodes.values_list("node", flat=True)) for lab in labs]
    assert listed == enrolled
