"""Acts on Kubernetes: others who act at the same time, budgets, gangs, services, quota, queues."""

import asyncio
from datetime import UTC, datetime

import pytest

from inventory.drivers.clusters.capabilities import Capability, Outcome, TenantSpec
from inventory.drivers.clusters.kubernetes import KubernetesCluster, access_of
from inventory.drivers.clusters.readings import JobState
from inventory.drivers.fake.kubernetes import KubernetesServer
from inventory.drivers.fake.kubernetes.admission import PODS
from inventory.drivers.fake.kubernetes.api import Request
from inventory.drivers.fake.kubernetes.cluster import add_namespace, add_pod, cordon_by_hand, finish_job, set_ready
from inventory.drivers.fake.kubernetes.kinds import KINDS
from inventory.drivers.fake.kubernetes.scheduling import NODES
from inventory.drivers.fake.kubernetes.services import BUDGETS, DEPLOYMENTS
from inventory.observations import FailureKind
from tests.contracts.clusters.kubernetes import DEADLINE, job_of, our_token, pod_body, seen_in, until


def deploy(server: KubernetesServer, replicas: int, *, budget: int | None = None) -> None:
    """A service of so many pods, with a budget of so many that have to stay."""
    template = pod_body("x")
    template["metadata"] = {"labels": {"app": "llm"}}
    spec = {"replicas": replicas, "template": template}
    server.store.create(DEPLOYMENTS, {"metadata": {"name": "llm", "namespace": "team-a"}, "spec": spec})
    if budget is not None:
        rule = {"minAvailable": budget, "selector": {"matchLabels": {"app": "llm"}}}
        server.store.create(BUDGETS, {"metadata": {"name": "keep", "namespace": "team-a"}, "spec": rule})


async def test_a_stale_409_is_tried_anew(kubernetes: KubernetesServer, cluster: KubernetesCluster) -> None:
    """H6: the node changes between looking and acting: nothing is overwritten, and the cordon stands."""
    changes = iter(range(2))

    def interfere(request: Request) -> None:
        if request.method == "PATCH" and next(changes, None) is not None:
            kubernetes.store.change(
                NODES, "", "gpu-1", lambda one: one["metadata"]["labels"].update(n=str(id(request)))
            )

    kubernetes.api.before = interfere
    assert (await cluster.cordon("gpu-1", owner="c1", reason="ecc", deadline=DEADLINE)).outcome is Outcome.DONE
    patches = [one for one in kubernetes.log if one.method == "PATCH"]
    node = (await cluster.read_nodes(deadline=DEADLINE)).nodes[0]
    assert (len(patches), node.owner, node.raw_state) == (3, "c1", "Ready,SchedulingDisabled")
    assert all(one.query == {"fieldManager": "sensaka"} for one in patches)


async def test_somebody_cordons_in_between(kubernetes: KubernetesServer, cluster: KubernetesCluster) -> None:
    """H6: the cordon that came first stays theirs; so does one that replaced ours, though our mark is still there."""
    kubernetes.api.before = lambda request: cordon_by_hand(kubernetes, "gpu-1") if request.method == "PATCH" else None
    assert (await cluster.cordon("gpu-1", owner="c1", reason="x", deadline=DEADLINE)).outcome is Outcome.HELD_BY_OTHER
    kubernetes.api.before = None
    assert (await cluster.cordon("gpu-2", owner="c1", reason="x", deadline=DEADLINE)).outcome is Outcome.DONE
    cordon_by_hand(kubernetes, "gpu-2", cordoned=False)
    assert (await cluster.uncordon("gpu-2", owner="c1", deadline=DEADLINE)).outcome is Outcome.UNCHANGED
    cordon_by_hand(kubernetes, "gpu-2")
    lifted = await cluster.uncordon("gpu-2", owner="c1", deadline=DEADLINE)
    assert (lifted.outcome, lifted.detail) == (Outcome.HELD_BY_OTHER, "cordoned by kubectl-cordon")
    assert [node.cordoned for node in (await cluster.read_nodes(deadline=DEADLINE)).nodes] == [True, True]


async def test_evictions_wait_for_a_budget(kubernetes: KubernetesServer, cluster: KubernetesCluster) -> None:
    """H6: 429 is tried again until another pod is ready elsewhere; what belongs to the node and bare pods stay."""
    deploy(kubernetes, 2, budget=2)
    await seen_in(cluster, "team-a/deployment/llm", "running", count=2)
    daemon = pod_body("agent", cards=0)
    owner = {"kind": "DaemonSet", "name": "agent", "uid": "d1", "apiVersion": "apps/v1", "controller": True}
    daemon["metadata"]["ownerReferences"] = [owner]
    daemon["spec"]["nodeName"] = "gpu-1"
    add_pod(kubernetes, "team-a", daemon)
    add_pod(kubernetes, "team-a", pod_body("mine", spec={"nodeName": "gpu-1"}))
    await cluster.cordon("gpu-1", owner="c1", reason="fan", deadline=DEADLINE)
    blocked = await cluster.evict("gpu-1", owner="c1", deadline=4)
    assert (blocked.outcome, blocked.kind, blocked.evicted) == (Outcome.FAILED, FailureKind.BUSY, ())
    assert {(one.job_id, one.stays) for one in blocked.left} == {
        ("team-a/deployment/llm", False),
        ("team-a/daemonset/agent", True),
        ("team-a/pod/mine", False),
    }
    assert any("needs 2 healthy pods and has 2" in one.reason for one in blocked.left)
    tries = sum(one.path.endswith("/eviction") for one in kubernetes.log)
    assert 4 <= tries <= 8  # two pods, each again after 1 s and 2 s

    def more(value: dict[str, dict[str, int]]) -> None:
        value["spec"]["replicas"] = 3

    kubernetes.store.change(DEPLOYMENTS, "team-a", "llm", more)
    emptied = await cluster.evict("gpu-1", owner="c1", deadline=15)
    assert len(emptied.evicted) == 2
    assert [one.job_id for one in emptied.left if not one.stays] == ["team-a/pod/mine"]
    assert "no controller" in next(one.reason for one in emptied.left if one.job_id == "team-a/pod/mine")
    nodes = {job.nodes for job in await seen_in(cluster, "team-a/deployment/llm", "running", count=3)}
    assert nodes == {("gpu-2",)}


async def test_only_our_cordon_is_emptied(kubernetes: KubernetesServer, cluster: KubernetesCluster) -> None:
    """H6: not cordoned is refused, another's cordon is left alone, an empty node is unchanged."""
    assert (await cluster.evict("gpu-1", owner="c1", deadline=5)).outcome is Outcome.REFUSED
    cordon_by_hand(kubernetes, "gpu-1")
    assert (await cluster.evict("gpu-1", owner="c1", deadline=5)).outcome is Outcome.HELD_BY_OTHER
    await cluster.cordon("gpu-2", owner="c1", reason="x", deadline=DEADLINE)
    assert (await cluster.evict("gpu-2", owner="c1", deadline=5)).outcome is Outcome.UNCHANGED


async def test_a_gang_runs_on_its_nodes(kubernetes: KubernetesServer, cluster: KubernetesCluster) -> None:
    """P11 P12: an indexed Job, one pod a node; each pod is a run of the one workload, with its own cards."""
    asked = job_of(nodes=("gpu-2", "gpu-1"), cards=4, time_limit=600, user="ann")
    sent = await cluster.submit(asked, deadline=DEADLINE)
    runs = await seen_in(cluster, sent.reference, "running", count=2)
    assert {run.nodes for run in runs} == {("gpu-1",), ("gpu-2",)}
    assert {run.array_task for run in runs} == {0, 1}
    assert {(run.array_id, run.account, run.user, run.time_limit, run.cards) for run in runs} == {
        (sent.reference, "team-a", "ann", 600, 4)
    }
    assert len({uuid for run in runs for binding in run.bindings for uuid in binding.uuids}) == 8
    assert {run.workload for run in runs} == {"Job/" + sent.reference.rpartition("/")[2]}


async def test_a_mark_is_one_job(kubernetes: KubernetesServer, cluster: KubernetesCluster) -> None:
    """P11: after a crash the same submission finds the job that is there, and starts no second one."""
    sent = [await cluster.submit(job_of(), deadline=DEADLINE) for _ in range(2)]
    assert [one.outcome for one in sent] == [Outcome.DONE, Outcome.UNCHANGED]
    assert sent[0].reference == sent[1].reference
    assert len(await seen_in(cluster, sent[0].reference, "running")) == 1
    other = await cluster.submit(job_of(account="nowhere", mark="sensaka:r2"), deadline=DEADLINE)
    assert (other.outcome, 'namespaces "nowhere" not found' in other.detail) == (Outcome.REFUSED, True)


async def test_a_job_that_does_not_fit_says_why(kubernetes: KubernetesServer, cluster: KubernetesCluster) -> None:
    """P12: waiting for cards, for quota, and for a priority class that is missing: each in the cluster's words."""
    await cluster.submit(job_of(mark="a", cards=8, node_count=2), deadline=DEADLINE)
    sent = await cluster.submit(job_of(mark="b", cards=8), deadline=DEADLINE)
    waiting = (await seen_in(cluster, sent.reference, "pending"))[0]
    await until(lambda: any("Insufficient" in str(one) for one in kubernetes.store.all(PODS)), "the reason")
    waiting = (await seen_in(cluster, sent.reference, "pending"))[0]
    assert waiting.reason.startswith("Unschedulable: 0/2 nodes are available: 2 Insufficient nvidia.com/gpu")
    assert (waiting.cards, waiting.cards_requested, waiting.nodes) == (0, 8, ())
    missing = await cluster.submit(job_of(mark="c", qos="gold"), deadline=DEADLINE)
    told = (await seen_in(cluster, missing.reference, "pending"))[0]
    assert told.key not in {pod["metadata"]["uid"] for pod in kubernetes.store.all(PODS)}


async def test_quota_holds_a_tenant(kubernetes: KubernetesServer, cluster: KubernetesCluster) -> None:
    """P3: a tenant of two cards gets no third one; MIG by its own name; the limits come and go."""
    limited = TenantSpec(name="lab", cards=2, cards_by_type={"nvidia.com/mig-1g.10gb": 7}, default_cpus=1)
    assert (await cluster.ensure_tenant(limited, deadline=DEADLINE)).outcome is Outcome.DONE
    first = await cluster.submit(job_of(account="lab", cards=2, mark="a"), deadline=DEADLINE)
    await seen_in(cluster, first.reference, "running")
    second = await cluster.submit(job_of(account="lab", cards=1, mark="b"), deadline=DEADLINE)
    await seen_in(cluster, second.reference, "pending")
    quota = kubernetes.store.find(KINDS["", "resourcequotas"], "lab", "sensaka")
    assert quota is not None
    assert quota["spec"]["hard"] == {"requests.nvidia.com/gpu": "2", "requests.nvidia.com/mig-1g.10gb": "7"}
    tenant = next(one for one in (await cluster.read_tenants(deadline=DEADLINE)).tenants if one.name == "lab")
    assert (tenant.cards, tenant.cards_by_type) == (2, (("nvidia.com/mig-1g.10gb", 7),))
    assert (tenant.isolated, tenant.ours) == (True, True)
    free = TenantSpec(name="lab", isolated=False)
    assert (await cluster.ensure_tenant(free, deadline=DEADLINE)).outcome is Outcome.DONE
    assert kubernetes.store.all(KINDS["networking.k8s.io", "networkpolicies"], "lab") == []
    assert kubernetes.store.all(KINDS["", "limitranges"], "lab") == []
    await seen_in(cluster, second.reference, "running")


async def test_a_foreign_namespace_is_not_taken(kubernetes: KubernetesServer, cluster: KubernetesCluster) -> None:
    """P3: a namespace that somebody else made gets no quota, until it is handed over by its label."""
    result = await cluster.ensure_tenant(TenantSpec(name="team-a", cards=1), deadline=DEADLINE)
    assert (result.outcome, "sensaka/tenant=team-a" in result.detail) == (Outcome.HELD_BY_OTHER, True)
    assert kubernetes.store.all(KINDS["", "resourcequotas"]) == []
    add_namespace(kubernetes, "handed", {"sensaka/tenant": "handed"})
    assert (await cluster.ensure_tenant(TenantSpec(name="handed", cards=1), deadline=DEADLINE)).ok


async def test_what_is_steered_by_others(kubernetes: KubernetesServer, cluster: KubernetesCluster) -> None:
    """P11: a service is scaled to nothing; bare pods, foreign kinds and running Jobs are refused with the reason."""
    deploy(kubernetes, 2)
    await seen_in(cluster, "team-a/deployment/llm", "running", count=2)
    ended = [await cluster.cancel("team-a/deployment/llm", deadline=DEADLINE) for _ in range(2)]
    assert [one.outcome for one in ended] == [Outcome.DONE, Outcome.UNCHANGED]
    assert "2 replicas" in ended[0].detail
    await until(lambda: not kubernetes.store.all(PODS), "its pods are gone")
    add_pod(kubernetes, "team-a", pod_body("shell"))
    await seen_in(cluster, "team-a/pod/shell", "running")
    assert (await cluster.requeue("team-a/pod/shell", deadline=DEADLINE)).outcome is Outcome.NOT_SUPPORTED
    assert (await cluster.cancel("team-a/pod/shell", deadline=DEADLINE)).outcome is Outcome.DONE
    assert (await cluster.cancel("team-a/pytorchjob/bert", deadline=DEADLINE)).outcome is Outcome.NOT_SUPPORTED
    sent = await cluster.submit(job_of(), deadline=DEADLINE)
    await seen_in(cluster, sent.reference, "running")
    held = await cluster.hold(sent.reference, deadline=DEADLINE)
    assert (held.outcome, "runs already" in held.detail) == (Outcome.REFUSED, True)
    finish_job(kubernetes, *sent.reference.split("/")[::2], 0)
    await seen_in(cluster, sent.reference, "completed")
    await until(lambda: is_complete(kubernetes, sent.reference), "the Job is complete")
    assert (await cluster.requeue(sent.reference, deadline=DEADLINE)).outcome is Outcome.REFUSED


def is_complete(server: KubernetesServer, job_id: str) -> bool:
    namespace, _, name = job_id.split("/")
    job = server.store.find(KINDS["batch", "jobs"], namespace, name)
    return any(one["type"] == "Complete" for one in (job or {}).get("status", {}).get("conditions", []))


async def test_kueue_keeps_its_jobs(kubernetes: KubernetesServer, cluster: KubernetesCluster) -> None:
    """P11: queues are read where Kueue is installed, a Job waits for it, and only it decides when."""
    described = await cluster.describe(deadline=DEADLINE)
    assert not described.has(Capability.QUEUES)
    refused = await cluster.submit(job_of(queue="gold"), deadline=DEADLINE)
    assert refused.outcome is Outcome.REFUSED
    kubernetes.api.groups.add("kueue.x-k8s.io")
    kubernetes.store.create(
        KINDS["kueue.x-k8s.io", "localqueues"], {"metadata": {"name": "gold", "namespace": "team-a"}}
    )
    queues = (await cluster.read_queues(deadline=DEADLINE)).queues
    assert [(one.name, one.accounts, one.up) for one in queues] == [("gold", ("team-a",), True)]
    assert (await cluster.describe(deadline=DEADLINE)).has(Capability.QUEUES)
    sent = await cluster.submit(job_of(queue="gold"), deadline=DEADLINE)
    waiting = (await seen_in(cluster, sent.reference, "pending"))[0]
    assert (waiting.queue, waiting.held) == ("gold", True)
    assert (await cluster.release(sent.reference, deadline=DEADLINE)).outcome is Outcome.NOT_SUPPORTED


async def test_a_lost_node_is_down_and_its_pods_are_kept(
    kubernetes: KubernetesServer, cluster: KubernetesCluster
) -> None:
    """P11: a kubelet that stopped posting is a node that is down, with the reason; a node that is back is idle."""
    set_ready(kubernetes, "gpu-1", False)
    lost = (await cluster.read_nodes(deadline=DEADLINE)).nodes[0]
    assert (lost.load, lost.reason) == ("down", "NodeStatusUnknown: Kubelet stopped posting node status.")
    set_ready(kubernetes, "gpu-1", True)
    assert (await cluster.read_nodes(deadline=DEADLINE)).nodes[0].load == "idle"


async def test_cards_that_nobody_tells_are_unknown(kubernetes: KubernetesServer, cluster: KubernetesCluster) -> None:
    """P12: a kubelet without ResourceHealthStatus: counted, not bound, and said so."""
    kubernetes.kubelets.tells_devices = False
    sent = await cluster.submit(job_of(cards=3), deadline=DEADLINE)
    job = (await seen_in(cluster, sent.reference, "running"))[0]
    assert (job.cards, job.bindings, job.cards_known) == (3, (), False)
    runs = (await cluster.read_runs(since=datetime.now(UTC), deadline=DEADLINE)).runs
    assert [(run.key, run.cards, run.state) for run in runs] == [(job.key, 3, JobState.RUNNING)]


async def test_an_observer_is_told_what_it_may_not(kubernetes: KubernetesServer) -> None:
    """P11: with the reading half of our manifest everything is read, and each act names the right that it lacks."""
    token = our_token(kubernetes)
    account = kubernetes.api.accounts[token]
    reading = [rule for rule in account.rules if not {"create", "patch", "delete"} & set(rule["verbs"])]
    driver = KubernetesCluster(access_of(kubernetes.kubeconfig(kubernetes.account("observer", reading))))
    described = await driver.describe(deadline=DEADLINE)
    can = {one for one in Capability if described.has(one)}
    assert can == {Capability.NODES, Capability.JOBS, Capability.FOLLOW}
    reasons = {one.capability: one.reason for one in described.capabilities}
    assert reasons[Capability.CORDON] == "our account may not: patch nodes"
    act = await driver.cordon("gpu-1", owner="c1", reason="x", deadline=DEADLINE)
    assert (act.outcome, act.kind) == (Outcome.FAILED, FailureKind.PERMISSION)
    assert (await driver.read_jobs(deadline=DEADLINE)).complete
    await driver.close()


@pytest.mark.parametrize("seconds", [0.3])
async def test_a_deadline_is_kept(kubernetes: KubernetesServer, cluster: KubernetesCluster, seconds: float) -> None:
    """P11: a server that does not answer costs the deadline; an act that was sent may have happened."""
    with kubernetes.store.lock:  # nobody gets an answer now
        start = asyncio.get_running_loop().time()
        reading = await cluster.read_jobs(deadline=seconds)
        act = await cluster.submit(job_of(cards=0), deadline=seconds)
        spent = asyncio.get_running_loop().time() - start
    assert [one.kind for one in reading.failures] == [FailureKind.TIMEOUT]
    assert act.outcome is Outcome.UNKNOWN
    assert spent < 3
