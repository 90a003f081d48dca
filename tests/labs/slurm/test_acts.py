"""Acts on a real Slurm: drains under our mark, submission, steering, accounts."""

import asyncio

import pytest

from inventory.drivers.clusters.capabilities import Capability, JobSpec, Outcome, QosSpec, TenantSpec
from inventory.drivers.clusters.readings import ClusterNode, NodeLoad
from inventory.drivers.clusters.slurm import SlurmCluster
from tests.labs.slurm.conftest import DEADLINE, Opened, job_in, job_now, rest, until
from tests.labs.slurm.lab import SlurmLab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("slurm")]
NODE = "h100-006"


async def node_now(cluster: SlurmCluster, name: str = NODE) -> ClusterNode:
    reading = await cluster.read_nodes(deadline=DEADLINE)
    return next(node for node in reading.nodes if node.name == name)


async def test_drain_and_return_of_a_busy_node(quiet: SlurmLab, either: SlurmCluster) -> None:
    """P11 H6: what runs goes on, nothing new starts, the mark names the owner; twice changes nothing."""
    running = quiet.submit("-w", NODE, "--gres=gpu:1")
    await job_in(either, running, "running")
    marked = await either.cordon(NODE, owner="c1", reason='memory "test"\nsoon', deadline=DEADLINE)
    assert marked.outcome is Outcome.DONE, marked
    seen = await node_now(either)
    assert (seen.cordoned, seen.owner, seen.reason) == (True, "c1", "sensaka:c1 memory 'test' soon")
    assert (await job_now(either, running)).state == "running"
    waiting = quiet.submit("-w", NODE, "--gres=gpu:1")
    assert (await either.cordon(NODE, owner="c1", reason="again", deadline=DEADLINE)).outcome is Outcome.UNCHANGED
    assert (await job_in(either, waiting, "pending")).nodes == ()
    assert (await either.uncordon(NODE, owner="c1", deadline=DEADLINE)).outcome is Outcome.DONE
    returned = await node_now(either)
    assert (returned.cordoned, returned.reason, returned.owner) == (False, "", "")
    await job_in(either, waiting, "running")
    assert (await either.uncordon(NODE, owner="c1", deadline=DEADLINE)).outcome is Outcome.UNCHANGED


async def test_other_peoples_reasons_stay(quiet: SlurmLab, either: SlurmCluster) -> None:
    """H6: a drain by hand is neither marked nor lifted, nor is one of another owner, nor one overwritten by hand."""
    quiet.run("scontrol", "update", f"nodename={NODE}", "state=drain", "reason=bad PSU, ask Ann")
    by_hand = await node_now(either)
    assert (by_hand.cordoned, by_hand.owner, by_hand.reason_by) == (True, "", "root")
    for result in (
        await either.cordon(NODE, owner="c1", reason="ours", deadline=DEADLINE),
        await either.uncordon(NODE, owner="c1", deadline=DEADLINE),
    ):
        assert result.outcome is Outcome.HELD_BY_OTHER
        assert "bad PSU, ask Ann" in result.detail
    assert (await node_now(either)).reason == "bad PSU, ask Ann"
    quiet.run("scontrol", "update", f"nodename={NODE}", "state=resume")

    assert (await either.cordon(NODE, owner="c1", reason="ours", deadline=DEADLINE)).ok
    assert (await either.uncordon(NODE, owner="c2", deadline=DEADLINE)).outcome is Outcome.HELD_BY_OTHER
    assert (await either.cordon(NODE, owner="c2", reason="x", deadline=DEADLINE)).outcome is Outcome.HELD_BY_OTHER
    quiet.run("scontrol", "update", f"nodename={NODE}", "reason=now it is mine")
    assert (await either.uncordon(NODE, owner="c1", deadline=DEADLINE)).outcome is Outcome.HELD_BY_OTHER
    assert (await node_now(either)).reason == "now it is mine"


async def test_a_down_node_keeps_its_own_reason(quiet: SlurmLab, either: SlurmCluster) -> None:
    """H6: a drain of a node that is down keeps the reason and puts it back; returning does not raise it."""
    quiet.run("scontrol", "update", f"nodename={NODE}", "state=down", "reason=smells of smoke")
    assert (await either.cordon(NODE, owner="c1", reason="repair", deadline=DEADLINE)).ok
    assert (await node_now(either)).reason == "sensaka:c1 repair | earlier: smells of smoke"
    assert (await either.uncordon(NODE, owner="c1", deadline=DEADLINE)).ok
    seen = await node_now(either)
    assert (seen.load, seen.cordoned, seen.reason) == (NodeLoad.DOWN, False, "smells of smoke")


async def test_a_drain_lifted_by_hand_is_noticed(quiet: SlurmLab, either: SlurmCluster) -> None:
    """H6: the node is back in service and nothing is left to lift."""
    assert (await either.cordon(NODE, owner="c1", reason="ours", deadline=DEADLINE)).ok
    quiet.run("scontrol", "update", f"nodename={NODE}", "state=resume")
    assert not (await node_now(either)).cordoned
    assert (await either.uncordon(NODE, owner="c1", deadline=DEADLINE)).outcome is Outcome.UNCHANGED


async def test_what_is_not_there(lab: SlurmLab, either: SlurmCluster) -> None:
    """P11: unknown nodes and jobs are answers, and words that could be options are no names."""
    assert (await either.cordon("nope", owner="c1", reason="x", deadline=DEADLINE)).outcome is Outcome.NOT_FOUND
    for name in ("--all", "h100-[001-006]", "../nodes", "a b", ""):
        assert (await either.cordon(name, owner="c1", reason="x", deadline=DEADLINE)).outcome is Outcome.NOT_SUPPORTED
    assert (await either.cordon(NODE, owner="no good", reason="x", deadline=DEADLINE)).outcome is Outcome.REFUSED
    for act in (either.cancel, either.hold, either.release, either.requeue, either.suspend, either.resume):
        result = await act("999999", deadline=DEADLINE)
        assert result.outcome is Outcome.NOT_FOUND, (act.__name__, result)
    assert (await either.signal("999999", "USR1", deadline=DEADLINE)).outcome is Outcome.NOT_FOUND
    assert (await either.signal("1", "USR1 --all", deadline=DEADLINE)).outcome is Outcome.REFUSED


def spec(lab: SlurmLab, **changes: object) -> JobSpec:
    script = "#!/bin/sh\nenv > told.$SLURM_JOB_ID\nsleep 60\n"
    values = {"name": "trial", "script": script, "mark": "sensaka:r1", "working_directory": str(lab.folder / "work")}
    return JobSpec(**(values | changes))  # type: ignore[arg-type]


async def test_submission_onto_named_nodes(quiet: SlurmLab, either: SlurmCluster) -> None:
    """P11: our own job lands where it is told, is found by its mark, and gets its own environment only."""
    asked = spec(
        quiet,
        queue="all",
        nodes=("h100-002", "mi300x-003"),
        cards=2,
        time_limit=90,
        environment={"GREETING": "hello, 'you' $HOME"},
        account="research",
    )
    sent = await either.submit(asked, deadline=DEADLINE)
    assert sent.outcome is Outcome.DONE, sent
    job = await job_in(either, sent.reference, "running")
    assert (set(job.nodes), job.cards, job.comment) == ({"h100-002", "mi300x-003"}, 4, "sensaka:r1")
    assert (job.time_limit, job.account, job.queue) == (120, "research", "all")  # Slurm counts minutes
    told = quiet.folder / "work" / f"told.{sent.reference}"

    async def written() -> bool:
        return told.exists() and "GREETING" in told.read_text()

    await until(written, "the job has told its environment")
    lines = await asyncio.to_thread(lambda: told.read_text().splitlines())
    assert "GREETING=hello, 'you' $HOME" in lines
    assert not [line for line in lines if line.startswith(("SLURM_JWT", "SLURM_TIME_FORMAT", "DATABASE_URL"))]


async def test_submission_by_slurmrestd_alone(quiet: SlurmLab, opened: Opened) -> None:
    """P11: without the commands the older slurmrestd starts jobs, but can't be told the nodes."""
    driver = opened(rest=rest(quiet))
    sent = await driver.submit(spec(quiet, cards=3, card_type="h100", held=True), deadline=DEADLINE)
    assert sent.outcome is Outcome.DONE, sent
    job = await job_now(driver, sent.reference)
    assert (job.held, job.cards_requested, job.comment) == (True, 3, "sensaka:r1")
    named = await driver.submit(spec(quiet, nodes=("h100-001",)), deadline=DEADLINE)
    described = await driver.describe(deadline=DEADLINE)
    drained = await driver.cordon(NODE, owner="c1", reason="x", deadline=DEADLINE)
    assert named.outcome is drained.outcome is Outcome.NOT_SUPPORTED
    assert not described.has(Capability.PLACE)
    assert described.has(Capability.SUBMIT)


async def test_a_job_that_slurm_refuses(quiet: SlurmLab, either: SlurmCluster) -> None:
    """P11: the scheduler's words reach whoever asked."""
    result = await either.submit(spec(quiet, account="nonesuch"), deadline=DEADLINE)
    assert result.outcome is Outcome.REFUSED
    assert "account" in result.detail


async def test_hold_release_signal_cancel(quiet: SlurmLab, either: SlurmCluster) -> None:
    """P11: steering of a job of ours."""
    script = "#!/bin/sh\ntrap 'exit 3' USR1\nsleep 60 & wait\n"
    sent = await either.submit(spec(quiet, script=script, held=True, cards=1), deadline=DEADLINE)
    number = sent.reference
    assert (await job_now(either, number)).held
    assert (await either.release(number, deadline=DEADLINE)).ok
    await job_in(either, number, "running")
    assert (await either.signal(number, "USR1", deadline=DEADLINE)).ok
    assert (await job_in(either, number, "failed")).exit_code == 3
    assert (await either.cancel(number, deadline=DEADLINE)).ok


async def test_accounts_and_qos(lab: SlurmLab, cluster: SlurmCluster) -> None:
    """P3: an account with limits and users is made once, set when it differs, and left when it is so."""
    wanted = TenantSpec(
        name="vision", description="Vision", parent="research", users=("nobody",), qos=("low",), cards=8,
        card_seconds=36_000,
    )  # fmt: skip
    results = [await cluster.ensure_tenant(wanted, deadline=DEADLINE) for _ in range(2)]
    assert [result.outcome for result in results] == [Outcome.DONE, Outcome.UNCHANGED]
    less = TenantSpec(name="vision", users=("nobody",), cards=4)
    assert (await cluster.ensure_tenant(less, deadline=DEADLINE)).outcome is Outcome.DONE
    qos = QosSpec(name="urgent", priority=500, preempts=("low",), cards=16, cards_per_user=8)
    results = [await cluster.ensure_qos(qos, deadline=DEADLINE) for _ in range(2)]
    assert [result.outcome for result in results] == [Outcome.DONE, Outcome.UNCHANGED]
    reading = await cluster.read_tenants(deadline=DEADLINE)
    tenants, known = {tenant.name: tenant for tenant in reading.tenants}, {one.name: one for one in reading.qos}
    vision = tenants["vision"]
    assert (vision.parent, vision.users, vision.cards, vision.card_seconds) == ("research", ("nobody",), 4, None)
    assert "low" in vision.qos
    assert (known["urgent"].priority, known["urgent"].preempts, known["urgent"].cards) == (500, ("low",), 16)
