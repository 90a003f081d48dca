"""Nodes that a scheduler, an agent and a BMC know: one record of one machine, whoever came first."""

import pytest
from django.utils import timezone

from inventory.models import Agent, Cluster, Job, Node, SchedulerNode, Site
from inventory.services.nodes import find_or_create_node
from tests.inventory.clusters.building import Lab, Opener, add_cards, journal, new_lab

pytestmark = pytest.mark.django_db


def enrolled(hostname: str, site: Site, cluster: Cluster | None, machine: str) -> Node:
    """An agent enrols and tells its host name."""
    node = find_or_create_node(
        machine_id=machine * 32, hostname=hostname, site=site, cluster=cluster, at=timezone.now(), source="agent"
    )
    Node.objects.filter(pk=node.pk).update(hostname=hostname)
    Agent.objects.create(node=node, token_digest=machine * 64)
    return node


@pytest.fixture
def lab(opener: Opener) -> Lab:
    return new_lab(opener)


def test_an_agent_joins_the_node_that_the_scheduler_made(lab: Lab) -> None:
    lab.sync()
    made = lab.node("n1")
    node = enrolled("n1.example.org", lab.cluster.site, lab.cluster, "a")
    assert node.pk == made.pk
    assert Node.objects.get(pk=made.pk).machine_id == "a" * 32
    # a second machine that calls itself the same is another one
    assert enrolled("n1", lab.cluster.site, lab.cluster, "b").pk != made.pk


def test_an_agent_without_a_cluster_joins_where_only_one_node_of_its_site_has_the_name(opener: Opener) -> None:
    lab, other = new_lab(opener, name="ada"), new_lab(opener, name="bob", nodes=1)
    lab.sync()
    other.sync()
    site = lab.cluster.site
    assert enrolled("n2", site, None, "a").pk == lab.node("n2").pk
    assert not SchedulerNode.objects.filter(node=enrolled("n1", site, None, "b")).exists()


def test_the_scheduler_finds_nodes_that_enrolled_before(lab: Lab) -> None:
    in_cluster = enrolled("n1", lab.cluster.site, lab.cluster, "a")
    loose = enrolled("n2", lab.cluster.site, None, "b")
    lab.sync()
    assert {row.name: row.node_id for row in SchedulerNode.objects.all()} == {"n1": in_cluster.pk, "n2": loose.pk}
    assert Node.objects.get(pk=loose.pk).cluster == lab.cluster
    assert Node.objects.count() == 2


def test_a_node_of_another_cluster_with_that_name_is_left_alone(lab: Lab) -> None:
    elsewhere = Cluster.objects.create(site=lab.cluster.site, name="bob")
    other = enrolled("n1", lab.cluster.site, elsewhere, "a")
    lab.sync()
    row = SchedulerNode.objects.select_related("node").get(name="n1")
    assert row.node is not None
    assert (row.node_id != other.pk, row.node.name, row.node.cluster) == (True, "n1~2", lab.cluster)


def test_two_records_of_one_node_become_one_when_the_agents_node_is_put_into_the_cluster(lab: Lab) -> None:
    elsewhere = Cluster.objects.create(site=lab.cluster.site, name="bob")
    node = enrolled("n1", lab.cluster.site, elsewhere, "a")
    add_cards(node)
    run = lab.submit(cards=1, nodes=("n1",))
    lab.sync()
    assert Node.objects.filter(cluster=lab.cluster).count() == 2
    Node.objects.filter(pk=node.pk).update(cluster=lab.cluster)
    lab.sync()
    assert SchedulerNode.objects.get(name="n1").node_id == node.pk
    assert Node.objects.count() == 2
    assert [place.pk for place in Job.objects.get().nodes.all()] == [node.pk]
    assert lab.cards(run.key) == [("n1", 0, "scheduler")]
    assert "they were" not in " ".join(journal("node_enrolled"))
    assert any("are one machine, because the scheduler knows it as n1" in text for text in journal("node_enrolled"))


def test_a_retired_node_that_is_still_listed_stays_retired(lab: Lab) -> None:
    lab.sync()
    Node.objects.filter(pk=lab.node("n1").pk).update(state="retired")
    lab.sync()
    assert lab.node("n1").state == "retired"
    assert Node.objects.count() == 2
