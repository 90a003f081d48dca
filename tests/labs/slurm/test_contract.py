"""A real Slurm keeps the contract, by slurmrestd with the commands beside it and by the commands alone."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from inventory.drivers.clusters.capabilities import ClusterDriver
from inventory.drivers.clusters.slurm import Login, RestDoor, SlurmCluster
from tests.contracts.cluster_contract import ClusterContract, Live
from tests.labs.slurm.conftest import commands, rest
from tests.labs.slurm.lab import SlurmLab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("slurm")]


class Handle:
    nodes = ("h100-001", "h100-002")
    unknown_job = "987654"

    def __init__(self, lab: SlurmLab) -> None:
        script = "#!/bin/sh\nwhile [ ! -e end.$SLURM_JOB_ID ]; do sleep 0.2; done\nexit $(cat end.$SLURM_JOB_ID)\n"
        self.fixed = {"script": script, "working_directory": str(lab.folder / "work")}
        self._lab = lab

    def drain_by_hand(self, node: str, reason: str) -> str:
        self._lab.run("scontrol", "update", f"nodename={node}", "state=drain", f"reason={reason}")
        return reason

    def resume_by_hand(self, node: str) -> None:
        self._lab.run("scontrol", "update", f"nodename={node}", "state=resume")

    def finish(self, job_id: str, exit_code: int) -> None:
        (self._lab.folder / "work" / f"end.{job_id}").write_text(str(exit_code))

    def run_again(self, job_id: str) -> None:
        # not at once: the first run's SIGKILL (KillWait) would meet the second
        self._lab.run("scontrol", "update", f"jobid={job_id}", "starttime=now+4seconds")

    def unreachable(self) -> ClusterDriver:
        return SlurmCluster(rest=RestDoor("http://127.0.0.1:9", Login("root", "x")))


class TestSlurm(ClusterContract):
    @pytest_asyncio.fixture(params=["rest and commands", "commands"])
    async def live(self, quiet: SlurmLab, request: pytest.FixtureRequest) -> AsyncIterator[Live]:
        both = request.param != "commands"
        driver = SlurmCluster(rest=rest(quiet) if both else None, command=commands(quiet), interval=0.3)
        if request.node.name.startswith(("test_tenants", "test_qualities")):
            for kind in ("account", "qos"):
                quiet.succeeds("sacctmgr", "-i", "delete", kind, "contract")
        yield driver, Handle(quiet)
        await driver.close()
