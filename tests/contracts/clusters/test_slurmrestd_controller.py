"""The emulated Slurm by itself: backfill, accounts, suspension, a state that is kept."""

import pytest

from inventory.drivers.fake.slurmrestd import Account, SlurmRefusal, Wish
from inventory.drivers.fake.slurmrestd.keeping import dump, restore
from tests.contracts.clusters.test_slurmrestd_emulator import NAMES, made_controller


def test_unknown_accounts_are_refused_where_slurm_enforces_them() -> None:
    controller = made_controller(accounts=(Account("vision", ("ann",)),), enforced=True)
    for user, account in (("bob", "vision"), ("ann", "other"), ("ann", "")):
        with pytest.raises(SlurmRefusal, match="Invalid account"):
            controller.submit(Wish(name="x", user=user, account=account))
    assert controller.submit(Wish(name="x", user="ann", account="vision")).state == "RUNNING"


def test_a_later_job_goes_first_only_where_it_delays_nobody() -> None:
    """P12: backfill: short work runs beside what waits for whole nodes, long work does not."""
    controller = made_controller()
    hold = [controller.submit(Wish(name="a", user="u", nodes=(name,), cards=6, limit=60)) for name in NAMES]
    waiting = controller.submit(Wish(name="wide", user="u", node_count=4, cards=8, limit=60))
    long = controller.submit(Wish(name="long", user="u", cards=2, limit=120))
    short = controller.submit(Wish(name="short", user="u", cards=2, limit=30))
    assert [job.state for job in (*hold, waiting, long, short)] == ["RUNNING"] * 4 + ["PENDING"] * 2 + ["RUNNING"]
    assert (waiting.reason, waiting.expected, long.reason) == ("Resources", hold[0].limit_at, "Priority")
    controller.advance(controller.now + 3600)
    assert {job.state for job in hold} == {"TIMEOUT"}
    assert (short.state, waiting.state, long.state) == ("TIMEOUT", "RUNNING", "PENDING")


def test_cards_in_all_are_spread_over_the_nodes() -> None:
    controller = made_controller()
    for name in ("h1", "h2", "h3"):
        controller.submit(Wish(name="a", user="u", nodes=(name,), cards=6, limit=60))
    job = controller.submit(Wish(name="b", user="u", node_count=3, total=11, limit=60))
    assert {share.node: len(share.cards) for share in job.shares} == {"h1": 2, "h2": 2, "h4": 7}
    for total in (33, 3):  # more than there is, and less than one on each node
        with pytest.raises(SlurmRefusal, match="not available"):
            controller.submit(Wish(name="c", user="u", node_count=4, total=total))


def test_a_suspended_run_keeps_its_cards_and_its_time() -> None:
    controller = made_controller()
    job = controller.submit(Wish(name="a", user="u", cards=2, limit=10))
    controller.advance(controller.now + 60)
    controller.suspend(job.id)
    assert len(controller.used(job.shares[0].node)) == 2
    controller.advance(controller.now + 3600)
    controller.resume_job(job.id)
    controller.advance(controller.now + 9 * 60 - 1)
    assert (job.state, job.suspended) == ("RUNNING", 3600)
    controller.advance(controller.now + 1)
    assert job.state == "TIMEOUT"


def test_a_kept_state_goes_on_in_another_process() -> None:
    controller = made_controller()
    job = controller.submit(Wish(name="a", user="u", cards=2, limit=10))
    controller.drain("h4", "fan")
    other = made_controller()
    restore(other, dump(controller))
    other.advance(other.now + 600)
    assert (other.jobs[job.id].state, other.nodes["h4"].reason) == ("TIMEOUT", "fan")
    assert other.submit(Wish(name="b", user="u")).id == job.id + 1
    with pytest.raises(ValueError, match="truncated"):
        restore(other, b'{"now": 1')
