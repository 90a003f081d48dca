"""Cordons end to end: ours set and lifted, lifted by hand, somebody else's left alone, crashes carried on."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from inventory.drivers.clusters.capabilities import ActResult
from inventory.drivers.clusters.readings import JobState
from inventory.models import Cordon, Node, Site
from inventory.selectors.counts import counts
from inventory.services.clusters import carrying_out
from inventory.services.clusters.cordoning import cordon, drain, uncordon
from sensaka.identity.models import User
from sensaka.kernel.errors import Conflict, InvalidInput
from tests.inventory.clusters.building import Lab, Opener, add_cards, journal, new_lab

pytestmark = pytest.mark.django_db


@pytest.fixture
def lab(opener: Opener) -> Lab:
    found = new_lab(opener)
    found.clock.now = timezone.now().replace(microsecond=0)  # acts are dated by our own clock
    found.sync(0)
    return found


@pytest.fixture
def person() -> User:
    return User.objects.create(username="grace")


def state(lab: Lab, name: str = "n1") -> tuple[bool, str]:
    node = lab.fake.scheduler.nodes[name]
    return node.cordoned, node.reason


def test_a_cordon_of_ours_is_set_marked_and_lifted(lab: Lab, person: User) -> None:
    node = lab.node("n1")
    add_cards(node)
    row = cordon(node=node, reason="fan is loud", actor=person)
    assert (row.state, row.requested_by, row.last_error, row.scheduler_node) == ("applied", person, "", "n1")
    assert state(lab) == (True, f"sensaka:{row.mark} fan is loud")
    (count,) = counts()
    assert (count.installed, count.available, count.cordoned) == (4, 0, 4)
    lab.sync(5)
    assert Cordon.objects.get().lifted_at is None
    lifted = uncordon(node=node, actor=person)
    assert lifted is not None
    assert (lifted.state, lifted.lifted_by, state(lab)) == ("lifted", "us", (False, ""))
    (count,) = counts()
    assert (count.available, count.cordoned) == (4, 0)
    assert journal("node_cordoned") == [
        "Node n1 is to be taken out of scheduling: fan is loud.",
        "Node n1 was taken out of scheduling: fan is loud.",
    ]
    assert journal("node_uncordoned") == [
        "Node n1 is to be returned to scheduling.",
        "Node n1 was returned to scheduling.",
    ]


def test_a_driver_that_breaks_is_told_and_the_other_nodes_are_taken_out(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = lab.fake.cordon

    async def broken(node: str, **words: Any) -> ActResult:
        if node == "n1":
            raise RuntimeError("a fault of ours")
        return await plain(node, **words)

    monkeypatch.setattr(lab.fake, "cordon", broken)
    first, second = (cordon(node=lab.node(name), reason="fan is loud", actor=None) for name in ("n1", "n2"))
    assert (first.state, second.state) == ("requested", "applied")
    assert first.last_error == "its answer could not be read or stored; see the log"
    assert carrying_out.carry_out([first.pk, second.pk]) == 1


def test_asking_twice_changes_nothing(lab: Lab, person: User) -> None:
    node = lab.node("n1")
    first = cordon(node=node, reason="test", actor=person)
    assert cordon(node=node, reason="test", actor=person) == first
    assert uncordon(node=node, actor=person) is not None
    assert uncordon(node=node, actor=person) is None
    assert Cordon.objects.count() == 1


def test_another_purpose_of_ours_stands_in_the_way(lab: Lab, person: User) -> None:
    node = lab.node("n1")
    cordon(node=node, reason="ecc", actor=None, purpose="health")
    with pytest.raises(Conflict, match="out already for health: ecc"):
        cordon(node=node, reason="test", actor=person)
    with pytest.raises(InvalidInput):
        cordon(node=lab.node("n2"), reason=" ", actor=person)


def test_ours_lifted_by_hand_is_noticed(lab: Lab, person: User) -> None:
    node = lab.node("n1")
    drain(node=node, reason="test", actor=person)
    assert Node.objects.get(pk=node.pk).state == "draining"
    lab.fake.scheduler.nodes["n1"].cordoned = False
    lab.fake.scheduler.nodes["n1"].reason = ""
    lab.sync(60)
    row = Cordon.objects.get()
    assert (row.state, row.lifted_by) == ("lifted", "hand")
    assert journal("node_uncordoned") == ["Node n1 was returned to scheduling by hand in Slurm of ada."]
    assert Node.objects.get(pk=node.pk).state == "active"


def test_somebody_elses_drain_is_shown_and_left_alone(lab: Lab, person: User) -> None:
    known = lab.fake.scheduler.nodes["n1"]
    known.cordoned, known.reason = True, "disk is full"
    lab.sync(10)
    node = lab.node("n1")
    row = Cordon.objects.get()
    assert (row.ours, row.reason, row.state) == (False, "disk is full", "applied")
    assert journal("node_cordoned") == ["Node n1 was taken out of scheduling in Slurm of ada: disk is full."]
    with pytest.raises(Conflict, match="it is returned there"):
        uncordon(node=node, actor=person)
    mine = cordon(node=node, reason="mine too", actor=person)
    assert (mine.state, mine.last_error) == ("requested", "somebody else has taken the node out: disk is full")
    assert uncordon(node=node, actor=person) is not None
    assert state(lab) == (True, "disk is full")
    lab.sync(10)
    assert Cordon.objects.get(ours=False).lifted_at is None
    known.cordoned, known.reason = False, ""
    lab.sync(10)
    assert Cordon.objects.get(ours=False).lifted_by == "hand"


def test_ours_waits_until_somebody_elses_is_gone(lab: Lab, person: User) -> None:
    known = lab.fake.scheduler.nodes["n1"]
    known.cordoned, known.reason = True, "disk"
    cordon(node=lab.node("n1"), reason="mine", actor=person)
    known.cordoned, known.reason = False, ""
    Cordon.objects.update(attempted_at=timezone.now() - timedelta(minutes=10))
    assert carrying_out.carry_out_due() == 1
    assert Cordon.objects.get().state == "applied"


def test_a_crash_before_the_act_is_carried_on(lab: Lab, person: User) -> None:
    row = cordon(node=lab.node("n1"), reason="test", actor=person, at_once=False)
    assert (row.state, state(lab)) == ("requested", (False, ""))
    assert carrying_out.carry_out_due() == 1
    assert Cordon.objects.get().state == "applied"
    assert carrying_out.carry_out_due() == 0


def test_a_crash_after_the_act_is_seen_by_the_next_sync(lab: Lab, person: User) -> None:
    row = cordon(node=lab.node("n1"), reason="test", actor=person, at_once=False)
    known = lab.fake.scheduler.nodes["n1"]
    known.cordoned, known.reason = True, f"sensaka:{row.mark} test"
    lab.sync(10)
    assert [(one.ours, one.state) for one in Cordon.objects.all()] == [(True, "applied")]


def test_out_of_reach_the_wish_stays_and_is_tried_again(lab: Lab, person: User) -> None:
    lab.fake.out_of_reach = "connection refused"
    row = cordon(node=lab.node("n1"), reason="test", actor=person)
    assert (row.state, row.last_error, row.attempts) == ("requested", "connection refused", 1)
    assert carrying_out.carry_out_due() == 0  # it rests first
    lab.fake.out_of_reach = ""
    Cordon.objects.update(attempted_at=timezone.now() - timedelta(minutes=1))
    assert carrying_out.carry_out_due() == 1
    assert Cordon.objects.get().state == "applied"


def test_a_drain_ends_when_nothing_runs_any_more(lab: Lab, person: User) -> None:
    """A scheduler that can't evict: what runs goes on to its end."""
    without = [state for state in lab.connection.capabilities if state["capability"] != "evict"]
    type(lab.connection).objects.update(capabilities=without, described_at=timezone.now() + timedelta(days=1))
    run = lab.submit(cards=1, nodes=("n1",))
    lab.sync(10)
    node = lab.node("n1")
    drain(node=node, reason="firmware", actor=person, purpose="maintenance")
    Cordon.objects.update(applied_at=lab.clock.now)
    lab.sync(10)
    assert carrying_out.carry_out_due() == 0
    assert Node.objects.get(pk=node.pk).state == "draining"
    lab.fake.scheduler.end(run, JobState.COMPLETED, 0)
    lab.sync(10)
    assert carrying_out.carry_out_due() == 1
    assert Node.objects.get(pk=node.pk).state == "maintenance"
    assert journal("node_drained") == ["Node n1 is drained: nothing runs there any more."]
    uncordon(node=node, actor=person)
    assert Node.objects.get(pk=node.pk).state == "active"


def test_a_drain_by_evictions(lab: Lab, person: User) -> None:
    run = lab.submit(cards=1, nodes=("n1",))
    node = lab.node("n1")
    drain(node=node, reason="firmware", actor=person)
    assert Node.objects.get(pk=node.pk).state == "draining"
    Cordon.objects.update(attempted_at=None)
    assert carrying_out.carry_out_due() == 1
    assert run.state == "requeued"
    assert Node.objects.get(pk=node.pk).state == "maintenance"


def test_a_node_without_a_scheduler_is_cordoned_here_alone(person: User) -> None:
    site = Site.objects.create(name="Bern")
    node = Node.objects.create(site=site, name="lone", state="active")
    row = drain(node=node, reason="test", actor=person)
    assert (row.state, row.cluster) == ("applied", None)
    assert carrying_out.carry_out_due() == 1
    assert Node.objects.get(pk=node.pk).state == "maintenance"
    lifted = uncordon(node=node, actor=person)
    assert lifted is not None
    assert lifted.state == "lifted"
    assert Node.objects.get(pk=node.pk).state == "active"


def test_a_node_that_the_scheduler_drops_keeps_no_cordon(lab: Lab, person: User) -> None:
    cordon(node=lab.node("n1"), reason="test", actor=person)
    del lab.fake.scheduler.nodes["n1"]
    lab.sync(10)
    assert Cordon.objects.get().lifted_by == "gone"


def test_a_cordon_from_before_the_scheduler_is_set_in_it_later(opener: Opener, person: User) -> None:
    lab = new_lab(opener)
    lab.clock.now = timezone.now().replace(microsecond=0)
    node = Node.objects.create(site=lab.cluster.site, cluster=lab.cluster, name="n1", state="active")
    assert cordon(node=node, reason="test", actor=person).cluster is None
    lab.sync(0)
    row = Cordon.objects.get()
    assert (row.cluster, row.state, row.scheduler_node) == (lab.cluster, "requested", "n1")
    assert carrying_out.carry_out_due() == 1
    assert state(lab) == (True, f"sensaka:{row.mark} test")
