"""The fleet's Slurm clusters: a queue that moves, one story at every door, the same after a restart."""

import itertools
from collections import Counter
from pathlib import Path

import pytest

from inventory.drivers.fake.slurmrestd import Controller, Wish
from sensaka.fleet.acts import ActError, perform
from sensaka.fleet.plan import SLOTS, make_plan
from sensaka.fleet.readings import node_reading
from sensaka.fleet.slurm.cluster import SlurmCluster, next_sunday
from sensaka.fleet.storage import WorldFiles
from sensaka.fleet.world import World
from tests.sensaka.fleet.conftest import NOON

HOUR = 3600


@pytest.fixture(scope="module")
def day() -> SlurmCluster:
    """A cluster that has run for a day."""
    cluster = SlurmCluster.begin(make_plan(seed=1, nodes=64, ipmi=True), "fra-train", NOON)
    cluster.advance(NOON + 18 * HOUR)
    return cluster


def controller_of(world: World, name: str = "fra-train") -> Controller:
    return world.slurm[name].controller


def test_a_day_of_a_cluster_has_every_kind_of_job_and_end(day: SlurmCluster) -> None:
    """P12: gangs, arrays, failures, limits, a queue that waits for reasons, most cards busy."""
    controller = day.controller
    states = Counter(run.state for run in controller.runs)
    assert {"COMPLETED", "FAILED", "TIMEOUT", "OUT_OF_MEMORY"} <= set(states)
    assert states["COMPLETED"] > sum(states.values()) / 2
    assert {2, 3, 4} <= {len(run.shares) for run in controller.runs}
    assert len({run.array_id for run in controller.runs if run.array_id}) > 5
    assert {run.wish.qos for run in controller.runs} == {"normal", "high"}
    waiting = controller.waiting()
    assert 3 <= len(waiting) <= 60
    assert "Resources" in {job.reason for job in waiting}
    held = sum(len(controller.used(node)) for node in controller.nodes)
    assert 0.75 * len(day.nodes) * SLOTS < held <= len(day.nodes) * SLOTS


def test_no_card_is_given_twice_and_no_limit_is_passed(day: SlurmCluster) -> None:
    """P12: over the whole day, by the accounting: runs on one card follow each other."""
    spans: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for run in day.controller.runs:
        assert run.wish.limit is None or run.ended - run.started <= run.wish.limit * 60
        for share in run.shares:
            for card in share.cards:
                spans.setdefault((share.node, card), []).append((run.started, run.ended))
    assert len(spans) > 100
    for found in spans.values():
        ordered = sorted(found)
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(ordered))


def test_a_seed_and_a_clock_give_one_story_however_often_it_is_looked_at() -> None:
    plan = make_plan(seed=3, nodes=16, ipmi=True)
    often, seldom = (SlurmCluster.begin(plan, "fra-train", NOON) for _ in range(2))
    for second in range(0, 2 * HOUR, 7):
        often.advance(NOON + second)
    often.advance(NOON + 2 * HOUR)
    seldom.advance(NOON + 2 * HOUR)
    assert often.state() == seldom.state()


def test_agents_cards_and_scheduler_tell_the_same_story(world: World) -> None:
    """I7: the process on a card is the job that Slurm bound to its minor number, and the card is as busy as it."""
    seen = 0
    for node in world.plan.nodes:
        cluster = world.slurm.get(node.cluster)
        if cluster is None:
            continue
        reading = node_reading(world, node)
        told = {process.card_uuid: process.slurm_job_id for process in reading.processes}
        bound = {
            index: str(job.id)
            for job in cluster.controller.running()
            for share in job.shares
            if share.node == node.name
            for index in share.cards
        }
        assert {card.minor: told[card.uuid] for card in reading.cards if card.uuid in told} == bound
        seen += len(bound)
    assert seen > 150


def test_a_job_that_starts_and_ends_is_on_the_cards_at_once(world: World) -> None:
    controller = controller_of(world)
    asked = {"do": "submit_job", "cluster": "fra-train", "user": "farid", "partition": "interactive", "minutes": 60}
    told = perform(world, asked)
    job = controller.jobs[int(told.split()[1])]
    assert (job.state, job.wish.account) == ("RUNNING", "speech"), told
    node = world.plan.by_name[job.shares[0].node]
    world.advance(world.at + 1)
    assert str(job.id) in {process.slurm_job_id for process in node_reading(world, node).processes}

    perform(world, {"do": "fail_job", "job": str(job.id), "code": "3"})

    world.advance(world.at + 1)
    assert str(job.id) not in {process.slurm_job_id for process in node_reading(world, node).processes}
    assert (job.state, job.code) == ("FAILED", 3)


def test_a_dead_node_ends_its_jobs_and_takes_none_until_it_is_back(world: World) -> None:
    """P12: silent first, down after a minute, its jobs wait again; back after the boot."""
    controller = controller_of(world)
    name = next(share.node for job in controller.running() for share in job.shares)
    lost = {job.id for job in controller.running() if any(share.node == name for share in job.shares)}
    perform(world, {"do": "os_down", "node": name})
    world.advance(world.at + 2)
    assert controller.nodes[name].words(8)[-1] == "NOT_RESPONDING"
    world.advance(world.at + 90)
    assert controller.nodes[name].down
    failed = {run.id for run in controller.runs if run.state == "NODE_FAIL" and run.failed_node == name}
    assert failed
    assert failed <= lost
    assert not controller.used(name)
    perform(world, {"do": "os_up", "node": name})
    world.advance(world.at + 2)
    assert (controller.nodes[name].down, controller.nodes[name].reason) == (False, "")


def test_a_lost_card_fails_its_job_and_drains_its_node_until_it_is_back(world: World) -> None:
    """H6: somebody else's drain, with its reason; what Sensaka or a person drained stays as it is."""
    cluster = world.slurm["fra-train"]
    controller = cluster.controller
    job = next(job for job in controller.running() if job.wish.name != "jupyter")
    share = job.shares[0]
    perform(world, {"do": "lose_card", "node": share.node, "slot": cluster.slots(share)[0]})
    world.advance(world.at + 1)
    assert (job.state, job.code) == ("FAILED", 1)
    assert controller.nodes[share.node].reason == "NHC: 7 of 8 GPUs answer"
    assert controller.nodes[share.node].drained
    perform(world, {"do": "restore", "node": share.node})
    world.advance(world.at + 1)
    assert not controller.nodes[share.node].drained

    perform(world, {"do": "drain_node", "node": share.node, "reason": "mine"})
    perform(world, {"do": "lose_card", "node": share.node, "slot": 0})
    perform(world, {"do": "restore", "node": share.node})
    world.advance(world.at + 1)
    assert controller.nodes[share.node].reason == "mine"


def test_a_restart_goes_on_with_the_same_jobs(world: World, tmp_path: Path) -> None:
    """As if nobody had stopped it: the same runs, later; what a client did is kept."""
    perform(world, {"do": "drain_node", "node": "sin-h100-02", "reason": "mine"})
    files = WorldFiles(tmp_path)
    files.save(world)

    again = WorldFiles(tmp_path).load(world.plan, NOON + HOUR)
    world.advance(NOON + HOUR)

    for name, cluster in world.slurm.items():
        other = again.slurm[name].controller
        assert other.runs == cluster.controller.runs, name
        assert other.running() == cluster.controller.running(), name
        assert [job.id for job in other.waiting()] == [job.id for job in cluster.controller.waiting()], name
    assert again.slurm["sin-train"].controller.nodes["sin-h100-02"].reason == "mine"


def test_only_schedulers_that_did_something_are_written_again(world: World, tmp_path: Path) -> None:
    files = WorldFiles(tmp_path)
    files.save(world)
    for path in tmp_path.glob("slurm-*"):
        path.unlink()
    perform(world, {"do": "drain_node", "node": "sin-h100-02"})
    files.save_schedulers(world)
    assert [path.name for path in tmp_path.glob("slurm-*")] == ["slurm-sin-train.json"]


def test_a_long_stop_is_made_up_for_in_part(world: World) -> None:
    """A week later: two days of it are lived through, quickly, and the cluster works."""
    cluster = world.slurm["sin-train"]
    cluster.advance(NOON + 7 * 24 * HOUR)
    assert cluster.controller.now == NOON + 7 * 24 * HOUR
    assert cluster.controller.running()
    assert min(run.ended for run in cluster.controller.runs) >= NOON + 6 * 24 * HOUR - 600


def test_the_weekly_maintenance_keeps_its_nodes_free(world: World) -> None:
    """P12: no job that would run into it starts there."""
    cluster = world.slurm["sin-train"]
    cluster.advance(NOON + HOUR)
    (reservation,) = cluster.controller.reservations
    assert reservation.flags[0] == "MAINT"
    assert reservation.start == next_sunday(int(NOON), "Asia/Singapore")
    cluster.advance(reservation.start + HOUR)
    assert [cluster.controller.used(name) for name in reservation.nodes] == [[], []]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"do": "submit_job"}, "names a Slurm cluster: fra-train, sin-train"),
        ({"do": "submit_job", "cluster": "fra-serve"}, "names a Slurm cluster"),
        ({"do": "submit_job", "cluster": "fra-train", "user": "nobody"}, "no user 'nobody'"),
        ({"do": "submit_job", "cluster": "fra-train", "cards": 9}, "from 1 to 8"),
        ({"do": "submit_job", "cluster": "fra-train", "partition": "x"}, "Invalid partition name"),
        ({"do": "submit_job", "cluster": "fra-train", "nodes": 20}, "not available"),
        ({"do": "cancel_job", "job": "1"}, "no cluster has a job '1'"),
        ({"do": "cancel_job"}, "no cluster has a job"),
        ({"do": "fail_job", "job": "x"}, "no cluster has a job"),
        ({"do": "drain_node", "node": "fra-h200-01"}, "no Slurm cluster"),
        ({"do": "resume_node", "node": "fra-h100-05"}, "takes work already"),
        ({"do": "start_scheduler", "cluster": "fra-serve"}, "answers already"),
    ],
)
def test_senseless_acts_on_jobs_are_refused(world: World, arguments: dict[str, object], reason: str) -> None:
    before = world.slurm["fra-train"].state()
    with pytest.raises(ActError, match=reason):
        perform(world, arguments)
    assert world.slurm["fra-train"].state() == before


def test_a_job_over_already_can_neither_be_cancelled_nor_failed(world: World) -> None:
    controller = controller_of(world)
    job = controller.submit(Wish(name="short", user="amara", account="language", cards=1, held=True))
    with pytest.raises(ActError, match="not running"):
        perform(world, {"do": "fail_job", "job": str(job.id)})
    assert "was cancelled" in perform(world, {"do": "cancel_job", "job": str(job.id)})
    with pytest.raises(ActError, match="already"):
        perform(world, {"do": "cancel_job", "job": str(job.id)})
