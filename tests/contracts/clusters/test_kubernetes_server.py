"""The API server's refusals, pages and rights; and what a big cluster costs."""

import re
import resource
import time
from typing import Any

import httpx
import pytest
import yaml

from inventory.drivers.clusters.capabilities import ClusterDriver, TenantSpec
from inventory.drivers.clusters.kubernetes import Access, KubernetesCluster, access_of
from inventory.drivers.clusters.kubernetes.connection import CHUNK
from inventory.drivers.clusters.kubernetes.errors import KubernetesError
from inventory.drivers.clusters.readings import JobState
from inventory.drivers.fake.kubernetes import ADMIN, KubernetesServer
from inventory.drivers.fake.kubernetes.admission import PODS
from inventory.drivers.fake.kubernetes.cluster import add_namespace, add_node, add_pod
from inventory.drivers.fake.kubernetes.kinds import KINDS
from inventory.drivers.fake.kubernetes.services import DEPLOYMENTS
from inventory.observations import FailureKind
from tests.contracts.clusters.kubernetes import DEADLINE, H100, MANIFEST, job_of, pod_body, seen_in

NODES, EACH = 500, 10  # 5,000 pods


def asking(server: KubernetesServer, token: str = ADMIN) -> httpx.Client:
    return httpx.Client(base_url=server.url, verify=False, headers={"Authorization": f"Bearer {token}"})


def test_the_stand_in_refuses_as_a_real_one_does(kubernetes: KubernetesServer) -> None:
    """P11: codes, reasons and words of Kubernetes 1.36, each met by a request that earns it."""
    fractional = pod_body(
        "bad", spec={"containers": [{"name": "m", "resources": {"limits": {"nvidia.com/gpu": "1.5"}}}]}
    )
    old = {"metadata": {"resourceVersion": "1"}}
    merge = {"Content-Type": "application/merge-patch+json"}
    with asking(kubernetes) as client, asking(kubernetes, kubernetes.account("nobody", [])) as nobody:
        answers = [
            client.get("/api/v1/nodes/none"),
            client.get("/api/v1/nodes", headers={"Authorization": "Bearer wrong"}),
            nobody.get("/api/v1/nodes"),
            client.post("/api/v1/namespaces", json={"metadata": {"name": "team-a"}}),
            client.patch("/api/v1/nodes/gpu-1", json=old, headers=merge),
            client.post("/api/v1/namespaces/team-a/pods", json=fractional),
            client.get("/api/v1/nodes", params={"limit": 1, "continue": "bm9uZTox"}),
            client.post("/api/v1/namespaces/nowhere/pods", json=pod_body("x")),
        ]
    told = [(one.status_code, one.json()["reason"], one.json()["message"]) for one in answers]
    assert [one[:2] for one in told] == [
        (404, "NotFound"),
        (401, "Unauthorized"),
        (403, "Forbidden"),
        (409, "AlreadyExists"),
        (409, "Conflict"),
        (422, "Invalid"),
        (410, "Expired"),
        (404, "NotFound"),
    ]
    assert told[2][2] == (
        'nodes is forbidden: User "nobody" cannot list resource "nodes" in API group "" at the cluster scope'
    )
    assert (
        'spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: "1500m": must be an integer' in told[5][2]
    )


async def test_a_fractional_card_is_refused(kubernetes: KubernetesServer, cluster: KubernetesCluster) -> None:
    """P11: 422 reaches whoever asked as a refusal with the field and its fault."""
    body = {
        "metadata": {"name": "half"},
        "spec": {"template": {"spec": pod_body("x")["spec"] | {"restartPolicy": "Never"}}},
    }
    body["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "0.5"}}  # type: ignore[index]
    end = time.monotonic() + 1e6
    with pytest.raises(KubernetesError, match="must be an integer") as caught:
        await cluster._connection.send("POST", "/apis/batch/v1/namespaces/team-a/jobs", until=end, body=body)
    assert (caught.value.note, caught.value.result().outcome) == ("refused", "refused")


async def test_a_list_begins_again_when_its_version_expires(
    kubernetes: KubernetesServer, cluster: KubernetesCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P12: 410 on a page: read anew, everything once; when it happens each time, that is told."""
    monkeypatch.setattr("inventory.drivers.clusters.kubernetes.connection.CHUNK", 3)
    for number in range(8):
        add_pod(kubernetes, "team-a", pod_body(f"p{number}"))
    broken = iter([True])

    def forget(request: Any) -> None:
        if "continue" in request.query and next(broken, False):
            kubernetes.store.forget()

    kubernetes.api.before = forget
    jobs = (await cluster.read_jobs(deadline=DEADLINE)).jobs
    assert sorted(job.name for job in jobs) == [f"p{number}" for number in range(8)]
    kubernetes.api.before = lambda request: kubernetes.store.forget() if "continue" in request.query else None
    reading = await cluster.read_jobs(deadline=DEADLINE)
    assert [(one.kind, "changed faster" in one.detail) for one in reading.failures] == [(FailureKind.BUSY, True)]


async def test_a_busy_server_is_asked_again(kubernetes: KubernetesServer, cluster: KubernetesCluster) -> None:
    """P11: 429 of the server's own says when to come again; it has done nothing."""
    kubernetes.busy = 1
    assert (await cluster.read_reservations(deadline=DEADLINE)).complete
    kubernetes.busy = 1
    assert (await cluster.read_reservations(deadline=0.2)).failures[0].kind is FailureKind.BUSY


async def test_who_we_talk_to_is_checked(kubernetes: KubernetesServer) -> None:
    """P11: another authority is a TLS fault, and our token was not sent; a wrong token is told as such."""
    with KubernetesServer() as other:
        config = yaml.safe_load(kubernetes.kubeconfig())
        config["clusters"][0]["cluster"]["server"] = other.url
        driver = KubernetesCluster(access_of(yaml.safe_dump(config)))
        reading = await driver.read_nodes(deadline=DEADLINE)
        await driver.close()
        assert ([one.kind for one in reading.failures], other.log) == ([FailureKind.TLS], [])
    wrong = KubernetesCluster(access_of(kubernetes.kubeconfig("wrong")))
    described = await wrong.describe(deadline=DEADLINE)
    await wrong.close()
    assert (described.reached, described.failures[0].kind) == (False, FailureKind.AUTHENTICATION)


async def test_an_object_that_makes_no_sense_costs_itself_only(
    kubernetes: KubernetesServer, cluster: KubernetesCluster
) -> None:
    """P11: one strange pod is told as a failure, the others are read."""
    add_pod(kubernetes, "team-a", pod_body("fine"))
    await seen_in(cluster, "team-a/pod/fine", "running")
    kubernetes.settle = lambda: None  # type: ignore[method-assign]
    strange = {"metadata": {"name": "odd", "namespace": "team-a"}, "spec": {"containers": 7}, "status": {"phase": "x"}}
    kubernetes.store.create(PODS, strange)
    reading = await cluster.read_jobs(deadline=DEADLINE)
    assert (reading.complete, [job.name for job in reading.jobs]) == (False, ["fine"])
    assert [(one.what, one.kind) for one in reading.failures] == [("pods 2", FailureKind.PROTOCOL)]


async def use_everything(server: KubernetesServer, driver: ClusterDriver) -> None:
    """Every call of the driver once, on whatever needs its rights."""
    await driver.describe(deadline=DEADLINE)
    for tenant in (TenantSpec(name="lab", cards=2, storage=2**40), TenantSpec(name="lab", description="x", cards=1,
                   storage=2**30), TenantSpec(name="lab", description="x", isolated=False)):  # fmt: skip
        assert (await driver.ensure_tenant(tenant, deadline=DEADLINE)).ok
    policy = KINDS["networking.k8s.io", "networkpolicies"]
    assert (await driver.ensure_tenant(TenantSpec(name="lab", description="x"), deadline=DEADLINE)).ok
    server.store.change(policy, "lab", "sensaka-tenant", lambda one: one["spec"].update(ingress=[]))
    assert (await driver.ensure_tenant(TenantSpec(name="lab", description="x"), deadline=DEADLINE)).ok
    sent = await driver.submit(job_of(held=True), deadline=DEADLINE)
    async for change in driver.follow_jobs(deadline=2):
        if change.whole:
            await driver.release(sent.reference, deadline=DEADLINE)
            add_services(server)
    job = (await seen_in(driver, sent.reference, "running"))[0]
    assert (await driver.cordon(job.nodes[0], owner="c1", reason="x", deadline=DEADLINE)).ok
    assert (await driver.evict(job.nodes[0], owner="c1", deadline=4)).evicted
    await driver.uncordon(job.nodes[0], owner="c1", deadline=DEADLINE)
    await driver.cancel(sent.reference, deadline=DEADLINE)
    add_pod(server, "team-a", pod_body("shell"))
    for job_id in ("team-a/pod/shell", "team-a/deployment/llm", "team-a/statefulset/db"):
        assert (await driver.cancel(job_id, deadline=DEADLINE)).ok
    await driver.read_nodes(deadline=DEADLINE)
    await driver.read_queues(deadline=DEADLINE)
    await driver.read_tenants(deadline=DEADLINE)


def add_services(server: KubernetesServer) -> None:
    """A Deployment of one pod, and a StatefulSet with its pod."""
    spec = {"replicas": 1, "template": pod_body("x")}
    server.store.create(DEPLOYMENTS, {"metadata": {"name": "llm", "namespace": "team-a"}, "spec": spec})
    kind = KINDS["apps", "statefulsets"]
    made = server.store.create(kind, {"metadata": {"name": "db", "namespace": "team-a"}, "spec": {}})
    owner = {"kind": "StatefulSet", "name": "db", "uid": made["metadata"]["uid"], "controller": True}
    add_pod(server, "team-a", pod_body("db-0", metadata={"ownerReferences": [owner]}))


async def test_our_manifest_grants_what_is_used_and_no_more(
    kubernetes: KubernetesServer, cluster: KubernetesCluster
) -> None:
    """P11: nothing that the driver does is refused, and every right of the manifest is one that it used."""
    kubernetes.api.groups.update(("kueue.x-k8s.io", "scheduling.volcano.sh"))
    claim = {"metadata": {"name": "c", "namespace": "team-a"}, "status": {}}
    kubernetes.store.create(KINDS["resource.k8s.io", "resourceclaims"], claim)
    kubernetes.api.used.clear()
    await use_everything(kubernetes, cluster)
    granted = {
        (verb, group, name)
        for one in yaml.safe_load_all(MANIFEST.read_text())
        if one["kind"] == "ClusterRole"
        for rule in one["rules"]
        for group in rule["apiGroups"]
        for name in rule["resources"]
        for verb in rule["verbs"]
    }
    assert granted - kubernetes.api.used == set()
    assert not re.search(r'["\[ ]\*', MANIFEST.read_text().split("---", 1)[1])  # no wildcard stands in it


def big_cluster() -> KubernetesServer:
    """500 nodes of eight cards with 5,000 pods: four of two cards on each, and six that ended."""
    server = KubernetesServer(tick=3600)
    add_namespace(server, "team-a")
    for number in range(NODES):
        name = f"gpu-{number:03d}"
        ids = [f"GPU-{number:08x}-0000-4000-8000-{card:012x}" for card in range(8)]
        add_node(server, name, {"nvidia.com/gpu": ids}, labels=H100)
        for place in range(EACH):
            body = pod_body(f"{name}-{place}", cards=2, spec={"nodeName": name})
            if place >= 4:
                body["spec"]["activeDeadlineSeconds"] = 1
            pod = add_pod(server, "team-a", body)
            server.kubelets._start(pod, name) if place < 4 else server.kubelets.end(
                "team-a", pod["metadata"]["name"], 0
            )
    return server


async def test_a_big_cluster_is_read_in_pages() -> None:
    """Issue "Clusters and jobs": 500 nodes and 5,000 pods in pages of 500, every card bound once."""
    with big_cluster() as server:
        driver = KubernetesCluster(access_of(server.kubeconfig()))
        await driver.describe(deadline=60)
        server.log.clear()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        nodes, jobs = await driver.read_nodes(deadline=60), await driver.read_jobs(deadline=60)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        asked = [one.path for one in server.log]
        await driver.close()
    held = [(b.node, uuid) for job in jobs.jobs for b in job.bindings for uuid in b.uuids]
    assert len(nodes.nodes) == NODES
    assert len(jobs.jobs) == NODES * EACH
    assert len(held) == len(set(held)) == NODES * 8
    assert sum(job.state is JobState.RUNNING for job in jobs.jobs) == NODES * 4
    assert all(node.accelerators[0].used == 8 for node in nodes.nodes)
    pages = -(-NODES * EACH // CHUNK)
    assert asked.count("/api/v1/pods") == pages + NODES * 4 // CHUNK  # all, and for nodes the unfinished ones
    assert len(asked) <= pages + 4 + 12
    print(f"{len(asked)} requests, peak grew by {grown:.0f} MiB")
    assert grown < 200


@pytest.mark.soak
async def test_one_sync_of_a_big_cluster_is_cheap() -> None:
    """Issue "Clusters and jobs": one sync of 500 nodes and 5,000 pods takes under 2 s of CPU."""
    with big_cluster() as server:
        driver = KubernetesCluster(access_of(server.kubeconfig()))
        spent = []
        for _ in range(3):
            start = time.thread_time()
            await driver.read_nodes(deadline=60)
            await driver.read_jobs(deadline=60)
            spent.append(time.thread_time() - start)
        await driver.close()
    print(f"CPU of one sync: {', '.join(f'{one:.2f}' for one in spent)} s")
    assert min(spent) < 2


async def test_a_server_that_is_not_one() -> None:
    """P11: nobody at the address is data, with the reason."""
    driver = KubernetesCluster(Access(server="https://127.0.0.1:9", token="x"))
    described = await driver.describe(deadline=5)
    await driver.close()
    assert (described.reached, described.failures[0].kind) == (False, FailureKind.UNREACHABLE)
    assert not any(one.available for one in described.capabilities)


def test_the_stand_in_ends(kubernetes: KubernetesServer) -> None:
    """A stand-in that is stopped twice, while watched, leaves nothing behind."""
    with asking(kubernetes) as client, client.stream("GET", "/api/v1/pods?watch=1"):
        kubernetes.stop()
        kubernetes.stop()
    assert kubernetes._thread is None
