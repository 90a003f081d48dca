"""A stand-in cluster for tests, and drivers for it with exactly the rights of the manifest that we ship."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inventory.drivers.clusters import KubernetesTarget, open_kubernetes
from inventory.drivers.clusters.capabilities import ClusterDriver, JobSpec
from inventory.drivers.clusters.kubernetes import Access, KubernetesCluster
from inventory.drivers.clusters.readings import JobReading
from inventory.drivers.fake.kubernetes import KubernetesServer
from inventory.drivers.fake.kubernetes.cluster import (
    add_namespace,
    add_node,
    cordon_by_hand,
    finish_job,
)
from inventory.drivers.fake.kubernetes.rights import accounts_of

MANIFEST = Path(__file__).parents[3] / "deploy" / "kubernetes" / "sensaka.yaml"
H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
DEADLINE = 20.0


def uuids(node: str, count: int = 8) -> list[str]:
    """Ids of a node's cards, as NVIDIA's plugin gives them."""
    return [f"GPU-{sum(node.encode()):08x}-0000-4000-8000-{number:012x}" for number in range(count)]


def small_cluster(**options: Any) -> KubernetesServer:
    """Two nodes of eight cards and a namespace; not started."""
    server = KubernetesServer(**options)
    for name in ("gpu-1", "gpu-2"):
        add_node(server, name, {"nvidia.com/gpu": uuids(name)}, labels=H100, taints=[TAINT])
    add_namespace(server, "team-a")
    return server


def our_token(server: KubernetesServer) -> str:
    """The token of the account in our manifest, with that manifest's rights and no others."""
    account = accounts_of(MANIFEST.read_text())["sensaka"]
    return server.account(account.name, account.rules)


def driver_for(server: KubernetesServer) -> ClusterDriver:
    """A driver with the rights of our manifest."""
    return open_kubernetes(KubernetesTarget(kubeconfig=server.kubeconfig(our_token(server))))


class Handle:
    """The stand-in's side for the contract suite."""

    nodes = ("gpu-1", "gpu-2")
    unknown_job = "team-a/job/nothing"
    fixed = {"script": "#!/bin/sh\nsleep 600\n", "image": "busybox", "account": "team-a"}

    def __init__(self, server: KubernetesServer) -> None:
        self._server = server

    def drain_by_hand(self, node: str, reason: str) -> str:
        cordon_by_hand(self._server, node)
        return "cordoned by kubectl-cordon"

    def resume_by_hand(self, node: str) -> None:
        cordon_by_hand(self._server, node, cordoned=False)

    def finish(self, job_id: str, exit_code: int) -> None:
        namespace, _, name = job_id.split("/")
        finish_job(self._server, namespace, name, exit_code)

    def run_again(self, job_id: str) -> None:
        """It runs again at once."""

    def unreachable(self) -> ClusterDriver:
        return KubernetesCluster(Access(server="https://127.0.0.1:9", token="x"))


def job_of(**changes: Any) -> JobSpec:
    """A job of one card in team-a."""
    fixed = {"name": "train", "script": "sleep 600", "mark": "sensaka:r1", "working_directory": "", "cards": 1}
    return JobSpec(**(fixed | {"image": "busybox", "account": "team-a"} | changes))


def pod_body(name: str, *, cards: int = 1, **changes: Any) -> dict[str, Any]:
    """A pod that somebody starts by hand."""
    resources = {"limits": {"nvidia.com/gpu": str(cards)}} if cards else {}
    spec = {
        "containers": [{"name": "main", "image": "busybox", "resources": resources}],
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
    }
    return {"metadata": {"name": name, **changes.get("metadata", {})}, "spec": spec | changes.get("spec", {})}


async def seen_in(driver: ClusterDriver, job_id: str, *states: str, count: int = 1) -> list[JobReading]:
    """The runs of a job, once so many are in one of the states."""
    end = time.monotonic() + DEADLINE
    while True:
        reading = await driver.read_jobs(deadline=DEADLINE)
        assert reading.complete, reading.failures
        jobs = [job for job in reading.jobs if job.job_id == job_id]
        if len(found := [job for job in jobs if job.state in states]) >= count:
            return found
        assert time.monotonic() < end, [(job.state, job.reason) for job in jobs]
        await asyncio.sleep(0.05)


async def until(check: Callable[[], bool], what: str) -> None:
    """Polls until it is so."""
    end = time.monotonic() + DEADLINE
    while not check():
        assert time.monotonic() < end, what
        await asyncio.sleep(0.02)
