"""Which cards a run holds: told by the scheduler, filled by agents, else unknown and never guessed."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from inventory.drivers.clusters.readings import CardBinding, CardKind, JobState
from inventory.drivers.fake.scheduler import FakeRun
from inventory.models import Card, JobCard, Node, ProcessBinding, SchedulerNode
from tests.inventory.clusters.building import T0, Lab, Opener, add_cards, new_lab

pytestmark = pytest.mark.django_db


@pytest.fixture
def lab(opener: Opener) -> Lab:
    found = new_lab(opener)
    found.sync()
    return found


def untold(run: FakeRun) -> None:
    """The scheduler counts the cards and does not say which."""
    run.bindings = [CardBinding(node=one.node, kind=one.kind, count=one.count) for one in run.bindings]


def process(card: Card, job_id: str, pid: int) -> ProcessBinding:
    assert card.node is not None
    return ProcessBinding.objects.create(
        node=card.node, card=card, pid=pid, slurm_job_id=job_id, first_seen_at=T0, seen_at=T0
    )


def test_cards_that_are_not_told_are_unknown_and_never_guessed(lab: Lab) -> None:
    add_cards(lab.node("n1"))
    run = lab.submit(cards=4, nodes=("n1",))
    untold(run)
    lab.sync()
    (row,) = lab.runs()
    # all four cards of the node are held: even so nobody says which, so nothing is put down
    assert (row.cards, row.cards_known) == (4, False)
    assert row.cards_reason == "the scheduler does not tell which cards of node n1"
    assert lab.cards(run.key) == [("n1", None, "scheduler")] * 4
    assert row.gpu_seconds(lab.clock.now) == 4 * 10


def test_a_node_whose_cards_nobody_read_yet(lab: Lab) -> None:
    run = lab.submit(cards=2, nodes=("n1",))
    lab.sync()
    assert lab.runs()[0].cards_reason == "no card is known with minor number 0 on node n1"
    add_cards(lab.node("n1"))
    lab.sync()  # the reading is as it was, our cards are not
    (row,) = lab.runs()
    assert (row.cards_known, row.cards_reason) == (True, "")
    assert lab.cards(run.key) == [("n1", 0, "scheduler"), ("n1", 1, "scheduler")]


def test_numbers_read_before_a_restart_are_not_used(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    add_cards(lab.node("n1"), read_at=T0)
    SchedulerNode.objects.filter(name="n1").update(booted_at=T0 + timedelta(seconds=5))
    plain = lab.fake._node

    def with_boot(node):  # type: ignore[no-untyped-def]
        from msgspec.structs import replace

        return replace(plain(node), booted_at=T0 + timedelta(seconds=5))

    monkeypatch.setattr(lab.fake, "_node", with_boot)
    lab.submit(cards=1, nodes=("n1",))
    lab.sync()
    assert lab.runs()[0].cards_reason == "node n1 was restarted, and its cards were not read since"
    Node.objects.filter(name="n1").update(read_at=T0 + timedelta(seconds=20))
    lab.sync()
    assert lab.runs()[0].cards_known is True


def test_a_node_that_only_its_bmc_tells_is_not_said_to_have_restarted(lab: Lab) -> None:
    add_cards(lab.node("n1"))
    Node.objects.filter(name="n1").update(read_at=None)
    lab.submit(cards=1, nodes=("n1",))
    lab.sync()
    assert lab.runs()[0].cards_reason == "neither agent nor exporter has read the cards of node n1 yet"


def test_agents_fill_what_the_scheduler_leaves_open(lab: Lab) -> None:
    cards = add_cards(lab.node("n1"))
    run = lab.submit(cards=2, nodes=("n1",))
    untold(run)
    lab.sync()
    process(cards[3], str(run.job_id), 100)
    lab.sync()
    (row,) = lab.runs()
    assert row.cards_known is False
    assert row.cards_reason == ("the scheduler does not tell which cards of node n1; its processes were seen on 1 of 2")
    assert lab.cards(run.key) == [("n1", None, "scheduler"), ("n1", 0, "agent")]
    second = process(cards[0], str(run.job_id), 101)
    lab.sync()
    assert lab.runs()[0].cards_known is True
    assert lab.cards(run.key) == [("n1", 0, "agent"), ("n1", 3, "agent")]
    second.delete()  # between two of its processes the run still has the card
    lab.sync()
    assert lab.cards(run.key) == [("n1", 0, "agent"), ("n1", 3, "agent")]


def test_processes_on_more_cards_than_it_was_given_tell_nothing(lab: Lab) -> None:
    cards = add_cards(lab.node("n1"))
    run = lab.submit(cards=1, nodes=("n1",))
    untold(run)
    for pid, card in enumerate(cards[:2]):
        process(card, str(run.job_id), 100 + pid)
    lab.sync()
    (row,) = lab.runs()
    assert row.cards_known is False
    assert row.cards_reason.endswith("its processes are on 2 cards of which 1 can be its own")
    assert lab.cards(run.key) == [("n1", None, "scheduler")]


def test_what_a_number_stood_for_stays_while_the_run_goes_on(lab: Lab) -> None:
    cards = add_cards(lab.node("n1"))
    run = lab.submit(cards=1, nodes=("n1",))
    lab.sync()
    (held,) = JobCard.objects.all()
    assert held.card == cards[3]
    Card.objects.filter(pk=cards[3].pk).update(minor=9)
    Card.objects.filter(pk=cards[0].pk).update(minor=0)
    lab.fake.scheduler.suspend(run)
    lab.sync()
    assert JobCard.objects.get().card == cards[3]


def test_a_run_that_was_over_before_anybody_looked(lab: Lab) -> None:
    add_cards(lab.node("n1"))
    run = lab.submit(cards=2, nodes=("n1",))
    lab.clock.pass_(5)
    lab.fake.scheduler.end(run, JobState.COMPLETED, 0)
    lab.sync()
    (row,) = lab.runs()
    assert (row.cards_known, row.cards_reason) == (False, "it was over before anybody could see which cards it held")
    assert (row.final_gpu_seconds, lab.cards(run.key)) == (10, [])
    assert [node.name for node in row.nodes.all()] == ["n1"]


def test_shares_of_a_card(lab: Lab) -> None:
    cards = add_cards(lab.node("n1"))
    run = lab.submit(cards=0, nodes=("n1",))
    run.bindings = [CardBinding(node="n1", kind=CardKind.SHARD, count=3, indices=(2,))]
    lab.sync()
    (held,) = JobCard.objects.all()
    assert (held.card, held.shares, held.kind) == (cards[1], 3, "shard")


def test_uuids_decide_where_they_are_told(lab: Lab) -> None:
    cards = add_cards(lab.node("n1"))
    run = lab.submit(cards=1, nodes=("n1",))
    run.bindings = [CardBinding(node="n1", kind=CardKind.CARD, count=1, uuids=(cards[2].uuid,))]
    lab.sync()
    assert JobCard.objects.get().card == cards[2]
    assert lab.runs()[0].cards_known is True


@pytest.fixture(autouse=True)
def nothing_left_open() -> Iterator[None]:
    yield
    assert not JobCard.objects.filter(card__isnull=True, job__cards_known=True).exists()
