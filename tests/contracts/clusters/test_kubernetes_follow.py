"""Watches: cut, expired, resumed; every run told once and every end told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

from inventory.drivers.clusters.kubernetes import KubernetesCluster, access_of
from inventory.drivers.clusters.readings import JobReading, JobsChange, JobState
from inventory.drivers.fake.kubernetes import KubernetesServer
from inventory.drivers.fake.kubernetes.admission import PODS
from inventory.drivers.fake.kubernetes.cluster import (
    add_namespace,
    add_node,
    add_pod,
    delete_pod_by_hand,
    finish_job,
    remove_node,
    set_ready,
)
from tests.contracts.clusters.kubernetes import DEADLINE, H100, driver_for, job_of, pod_body, seen_in, until, uuids

END = {"completed", "failed", "cancelled", "requeued", "timeout"}


class Told(list[JobsChange]):
    """What a follower was told so far."""

    def states(self, key: str) -> list[JobState]:
        """All states of one run, in the order in which they were told."""
        return [job.state for change in self for job in (*change.jobs, *change.gone) if job.key == key]

    def gone(self) -> list[JobReading]:
        """Runs that were told to be gone."""
        return [job for change in self for job in change.gone]

    @property
    def wholes(self) -> int:
        """How often everything was told anew."""
        return sum(change.whole for change in self)


@asynccontextmanager
async def following(driver: KubernetesCluster, cursor: str = "") -> AsyncIterator[Told]:
    """Follows in the background; begins when the first change is there, or at once from a cursor."""
    told = Told()

    async def follow() -> None:
        async with aclosing(driver.follow_jobs(cursor=cursor, deadline=60)) as changes:  # type: ignore[type-var]
            async for change in changes:
                told.append(change)

    task = asyncio.create_task(follow())
    try:
        if not cursor:
            await until(lambda: bool(told), "the first change")
        yield told
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def running(driver: KubernetesCluster, **changes: object) -> JobReading:
    sent = await driver.submit(job_of(**changes), deadline=DEADLINE)
    return (await seen_in(driver, sent.reference, "running"))[0]


async def test_a_cut_line_loses_and_doubles_nothing(kubernetes: KubernetesServer, cluster: KubernetesCluster) -> None:
    """P12: lines are cut ten times while jobs come and go: each run is told to run once and to end once."""
    async with following(cluster) as told:
        keys = []
        for number in range(10):
            job = await running(cluster, mark=f"sensaka:cut{number}", name=f"cut{number}")
            keys.append(job.key)
            kubernetes.cut_watches()
            finish_job(kubernetes, *job.job_id.split("/")[::2], 0)
        await until(lambda: all(told.states(key)[-1:] == ["completed"] for key in keys), "all ended")
        for key in keys:
            states = told.states(key)
            assert states.count(JobState.COMPLETED) == 1
            assert states.count(JobState.RUNNING) <= 2  # without and with its cards
        assert told.wholes == 1
        assert any(not change.complete for change in told)
        versions = [tuple(map(int, change.cursor.split(","))) for change in told if change.cursor]
        assert versions == sorted(versions)


async def test_a_watch_goes_on_after_410(kubernetes: KubernetesServer, cluster: KubernetesCluster) -> None:
    """P12: history is thrown away during a cut: everything is told anew, as whole, and the watch goes on."""
    job = await running(cluster)
    async with following(cluster) as told:
        kubernetes.api.before = lambda request: kubernetes.store.forget() if "watch" in request.query else None
        add_pod(kubernetes, "team-a", pod_body("other"))
        kubernetes.cut_watches()
        await until(lambda: told.wholes >= 2, "told anew")
        kubernetes.api.before = None
        await until(lambda: told.wholes >= 2 and told[-1].complete, "it goes on")
        finish_job(kubernetes, *job.job_id.split("/")[::2], 3)
        await until(lambda: told.states(job.key)[-1:] == ["failed"], "its end is told")
        assert told.states(job.key).count(JobState.FAILED) == 1  # told once, though everything was told anew
        assert not told.gone()


async def test_a_pod_deleted_during_an_outage(kubernetes: KubernetesServer, cluster: KubernetesCluster) -> None:
    """P12: nobody answers for a while; the pod that was deleted meanwhile is told to be gone, with its end."""
    pod = add_pod(kubernetes, "team-a", pod_body("shell"))
    uid = pod["metadata"]["uid"]
    await seen_in(cluster, "team-a/pod/shell", "running")
    async with following(cluster) as told:
        kubernetes.go_away()
        await until(lambda: not told[-1].complete, "the outage is told")
        assert not (await cluster.read_jobs(deadline=5)).complete  # absent from that reading is not gone
        delete_pod_by_hand(kubernetes, "team-a", "shell")
        await until(lambda: not any(one["metadata"]["uid"] == uid for one in pods_of(kubernetes)), "it is gone")
        kubernetes.come_back()
        await until(lambda: bool(told.gone()), "it is told")
        assert [(one.key, one.state) for one in told.gone()] == [(uid, JobState.CANCELLED)]
        assert told.gone()[0].ended_at is not None
        assert told.wholes == 1


async def test_a_pod_deleted_during_an_outage_that_outlasts_history(
    kubernetes: KubernetesServer, cluster: KubernetesCluster
) -> None:
    """P12: then a whole reading lacks it, which is what says that it is gone."""
    pod = add_pod(kubernetes, "team-a", pod_body("shell"))
    await seen_in(cluster, "team-a/pod/shell", "running")
    async with following(cluster) as told:
        kubernetes.go_away()
        delete_pod_by_hand(kubernetes, "team-a", "shell")
        await until(lambda: not pods_of(kubernetes), "it is gone")
        kubernetes.store.forget()
        kubernetes.come_back()
        await until(lambda: told.wholes == 2, "everything is told anew")
        last = [change for change in told if change.whole][-1]
        assert pod["metadata"]["uid"] not in {job.key for job in last.jobs}


def pods_of(server: KubernetesServer) -> list[dict[str, object]]:
    return server.store.all(PODS)


async def test_another_process_goes_on_from_the_cursor(
    kubernetes: KubernetesServer, cluster: KubernetesCluster
) -> None:
    """P12: what happened while nobody followed is told from the cursor on, without a whole reading."""
    job = await running(cluster)
    async with following(cluster) as told:
        await until(lambda: len(told) > 1 and bool(told[-1].cursor), "a bookmark moves the cursor")
        cursor = told[-1].cursor
    finish_job(kubernetes, *job.job_id.split("/")[::2], 0)
    other = driver_for(kubernetes)
    assert isinstance(other, KubernetesCluster)
    async with following(other, cursor) as told:
        await until(lambda: told.states(job.key)[-1:] == ["completed"], "its end is told")
        assert told.wholes == 0
        ended = next(one for change in told for one in change.jobs if one.state is JobState.COMPLETED)
        assert (ended.workload, ended.exit_code, ended.job_id) == (job.workload, 0, job.job_id)
    await other.close()


async def test_a_waiting_job_gives_way_to_its_pods(kubernetes: KubernetesServer, cluster: KubernetesCluster) -> None:
    """P12: a held Job is told under its own UID, and that entry goes when its pods come."""
    async with following(cluster) as told:
        sent = await cluster.submit(job_of(held=True), deadline=DEADLINE)
        waiting = (await seen_in(cluster, sent.reference, "pending"))[0]
        await until(lambda: bool(told.states(waiting.key)), "it is told")
        assert (await cluster.release(sent.reference, deadline=DEADLINE)).ok
        job = (await seen_in(cluster, sent.reference, "running"))[0]
        await until(lambda: waiting.key in {one.key for one in told.gone()}, "its entry goes")
        await until(lambda: JobState.RUNNING in told.states(job.key), "its pod is told")
    assert waiting.held
    assert waiting.cards_requested == 1


async def test_a_removed_jobs_end_is_told_by_what_happened_to_it(
    kubernetes: KubernetesServer, cluster: KubernetesCluster
) -> None:
    """P12: a time limit, a cancel and a pod deleted by hand are three different ends."""
    async with following(cluster) as told:
        late = await running(cluster, mark="sensaka:late", time_limit=1)
        ended = await running(cluster, mark="sensaka:ended")
        again = await running(cluster, mark="sensaka:again")
        assert (await cluster.cancel(ended.job_id, deadline=DEADLINE)).ok
        assert (await cluster.requeue(again.job_id, deadline=DEADLINE)).ok
        wanted = {late.key: JobState.TIMEOUT, ended.key: JobState.CANCELLED, again.key: JobState.REQUEUED}

        def ends() -> dict[str, JobState]:
            return {one.key: one.state for one in told.gone() if one.key in wanted}

        await until(lambda: ends() == wanted, "all ends")
    for one in (late, ended, again):
        assert [state for state in told.states(one.key) if state in END] in ([wanted[one.key]], [wanted[one.key]] * 2)


async def test_a_lost_node_ends_its_runs(kubernetes: KubernetesServer, cluster: KubernetesCluster) -> None:
    """P12: a node that stopped answering keeps its run ending until it is given up; then the job runs elsewhere."""
    kubernetes.patience = 0.2
    job = await running(cluster)
    async with following(cluster) as told:
        set_ready(kubernetes, job.nodes[0], False)
        await until(lambda: told.states(job.key)[-1:] == [JobState.COMPLETING], "it is to leave")
        remove_node(kubernetes, job.nodes[0])
        await until(lambda: job.key in {one.key for one in told.gone()}, "its end is told")
        again = (await seen_in(cluster, job.job_id, "running"))[0]
    ended = [one for one in told.gone() if one.key == job.key]
    assert [one.state for one in ended] == [JobState.NODE_FAIL]
    assert ended[0].reason.startswith("DeletionByTaintManager")
    assert (again.key != job.key, again.nodes != job.nodes) == (True, True)


async def test_a_node_under_another_name(kubernetes: KubernetesServer, cluster: KubernetesCluster) -> None:
    """P11: a node that was renamed is another node of the cluster, and by its machine's UUID the same server."""
    before = {node.name: node.system_uuid for node in (await cluster.read_nodes(deadline=DEADLINE)).nodes}
    remove_node(kubernetes, "gpu-2")
    add_node(kubernetes, "gpu-2-new", {"nvidia.com/gpu": uuids("gpu-2")}, labels=H100, system_uuid=before["gpu-2"])
    after = {node.name: node.system_uuid for node in (await cluster.read_nodes(deadline=DEADLINE)).nodes}
    assert set(after) == {"gpu-1", "gpu-2-new"}
    assert after["gpu-2-new"] == before["gpu-2"]


async def test_the_same_names_in_two_clusters(kubernetes: KubernetesServer, cluster: KubernetesCluster) -> None:
    """P11: nodes and jobs of the same name are told apart by their cluster and by their keys."""
    with KubernetesServer() as second:
        add_node(second, "gpu-1", {"nvidia.com/gpu": uuids("second-gpu-1")}, labels=H100, system_uuid="other")
        add_namespace(second, "team-a")
        config = second.kubeconfig(name="second")
        other = KubernetesCluster(access_of(config))
        pods = [add_pod(server, "team-a", pod_body("same")) for server in (kubernetes, second)]
        first, twin = [(await seen_in(one, "team-a/pod/same", "running"))[0] for one in (cluster, other)]
        nodes = [(await one.read_nodes(deadline=DEADLINE)).nodes[0] for one in (cluster, other)]
        await other.close()
    assert (first.cluster, twin.cluster) == ("stand-in", "second")
    assert [first.key, twin.key] == [pod["metadata"]["uid"] for pod in pods]
    assert first.key != twin.key
    assert nodes[0].name == nodes[1].name
    assert nodes[0].system_uuid != nodes[1].system_uuid
