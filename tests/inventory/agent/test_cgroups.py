"""Whom a process belongs to, from every shape of /proc/PID/cgroup (I4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.agent.cgroups import Owner, is_private, owner_of

C = "3f4b" * 16
D = "a1b2" * 16
UID = "0b5c8f0e-6a3d-4f52-9d4a-1c2e3f405162"
UID_ = UID.replace("-", "_")
STATIC = "7f" * 16

SHAPES: dict[str, tuple[str, Owner]] = {
    "v1 cgroupfs, burstable": (f"5:memory:/kubepods/burstable/pod{UID}/{C}", Owner(C, UID)),
    "v1 cgroupfs, best effort": (f"5:memory:/kubepods/besteffort/pod{UID}/{C}", Owner(C, UID)),
    "v1 cgroupfs, guaranteed": (f"5:memory:/kubepods/pod{UID}/{C}", Owner(C, UID)),
    "v1, one controller in its root": (f"3:rdma:/\n5:memory:/kubepods/pod{UID}/{C}\n0::/", Owner(C, UID)),
    "systemd, burstable, containerd": (
        f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice/cri-containerd-{C}.scope",
        Owner(C, UID),
    ),
    "systemd, guaranteed, containerd": (
        f"0::/kubepods.slice/kubepods-pod{UID_}.slice/cri-containerd-{C}.scope",
        Owner(C, UID),
    ),
    "systemd, cri-o": (
        f"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{UID_}.slice/crio-{C}.scope",
        Owner(C, UID),
    ),
    "systemd, cri-o, conmon": (
        f"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{UID_}.slice/crio-conmon-{C}.scope",
        Owner(C, UID),
    ),
    "systemd, cri-o, a group within the container": (
        f"0::/kubepods.slice/kubepods-pod{UID_}.slice/crio-{C}.scope/container",
        Owner(C, UID),
    ),
    "kubelet with systemd, containerd without": (
        f"0::/system.slice/containerd.service/kubepods-burstable-pod{UID_}.slice:cri-containerd:{C}",
        Owner(C, UID),
    ),
    "static pod": (
        f"0::/kubepods.slice/kubepods-burstable-pod{STATIC}.slice/cri-containerd-{C}.scope",
        Owner(C, STATIC),
    ),
    "static pod, cgroupfs": (f"4:cpu:/kubepods/burstable/pod{STATIC}/{C}", Owner(C, STATIC)),
    "kind: a node that is a container": (f"0::/docker/{D}/kubelet/kubepods/burstable/pod{UID}/{C}", Owner(C, UID)),
    "kind with systemd": (
        f"0::/system.slice/docker-{D}.scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{UID_}.slice"
        f"/cri-containerd-{C}.scope",
        Owner(C, UID),
    ),
    "k3s": (f"0::/system.slice/k3s.service/kubepods/burstable/pod{UID}/{C}", Owner(C, UID)),
    "docker v1": (f"9:devices:/docker/{C}", Owner(C)),
    "docker with systemd": (f"0::/system.slice/docker-{C}.scope", Owner(C)),
    "podman as root": (f"0::/machine.slice/libpod-{C}.scope/container", Owner(C)),
    "podman as a user": (
        f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{C}.scope/container",
        Owner(C),
    ),
    "podman, in a pod": (f"0::/machine.slice/machine-libpod_pod_{D}.slice/libpod-{C}.scope", Owner(C)),
    "nerdctl": (f"0::/system.slice/nerdctl-{C}.scope", Owner(C)),
    "Slurm v2, a task": ("0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_3", Owner(slurm_job_id="4711")),
    "Slurm v2, batch": (
        "0::/system.slice/slurmstepd.scope/job_4711/step_batch/user/task_0",
        Owner(slurm_job_id="4711"),
    ),
    "Slurm v2, interactive": (
        "0::/system.slice/slurmstepd.scope/job_4711/step_interactive/user/task_0",
        Owner(slurm_job_id="4711"),
    ),
    "Slurm v2, extern": (
        "0::/system.slice/slurmstepd.scope/job_4711/step_extern/user/task_special",
        Owner(slurm_job_id="4711"),
    ),
    "Slurm v2, slurmstepd itself": (
        "0::/system.slice/slurmstepd.scope/job_4711/step_0/slurm",
        Owner(slurm_job_id="4711"),
    ),
    "Slurm v2, several slurmd": (
        "0::/system.slice/node12_slurmstepd.scope/job_4711/step_0/user/task_0",
        Owner(slurm_job_id="4711"),
    ),
    "Slurm v2, the placeholder": ("0::/system.slice/slurmstepd.scope/system", Owner()),
    "Slurm v1": (
        "8:memory:/slurm/uid_1000/job_4711/step_0/task_0\n6:cpuset:/slurm/uid_1000/job_4711/step_0\n1:name=systemd:/",
        Owner(slurm_job_id="4711"),
    ),
    "Slurm v1, several slurmd": ("8:memory:/slurm_node12/uid_1000/job_4711/step_batch", Owner(slurm_job_id="4711")),
    "Slurm, a container within": (
        f"0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0/libpod-{C}.scope",
        Owner(C, "", "4711"),
    ),
    "removed meanwhile": (f"0::/system.slice/docker-{C}.scope (deleted)", Owner(C)),
    "another namespace's root": ("0::/", Owner()),
    "outside of our namespace": (f"0::/../../kubepods-pod{UID_}.slice/cri-containerd-{C}.scope", Owner(C, UID)),
    "an ordinary service": ("0::/system.slice/slurmd.service", Owner()),
    "a user's session": ("0::/user.slice/user-1000.slice/session-3.scope", Owner()),
    "a job_ folder of nobody": ("0::/user.slice/job_17/step_0", Owner()),
    "a hexadecimal name that is too short": ("0::/system.slice/docker-abcdef.scope", Owner()),
    "nothing": ("", Owner()),
}


@pytest.mark.parametrize(("text", "owner"), SHAPES.values(), ids=SHAPES.keys())
def test_shape(text: str, owner: Owner) -> None:
    assert owner_of(text + "\n") == owner


def test_a_private_namespace_shows_its_own_root_only() -> None:
    assert is_private("0::/\n")
    assert not is_private("0::/init.scope\n")
    assert not is_private("1:name=systemd:/\n0::/init.scope\n")


@given(
    st.text()
    | st.lists(st.sampled_from(["/", "pod", UID, UID_, C, "slurmstepd.scope", "job_1", ":", "-", "\n"])).map("".join)
)
def test_any_text_gives_well_formed_owners(text: str) -> None:
    owner = owner_of(text)
    assert owner.container_id in ("", C, D) or len(owner.container_id) == 64
    assert len(owner.pod_uid) in (0, 32, 36)
    assert owner.slurm_job_id == "" or owner.slurm_job_id.isdigit()
