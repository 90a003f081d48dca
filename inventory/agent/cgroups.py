"""What the text of /proc/PID/cgroup says about whom a process belongs to. Pure.

The shapes are those of cgroup v1 and v2 with the cgroupfs and systemd drivers of containerd, cri-o, docker and
podman, of the kubelet (with any prefix before `kubepods`), and of Slurm's v1 and v2 plug-ins.
"""

import re
from dataclasses import dataclass

_HEX = r"[0-9a-f]"
_UID = rf"{_HEX}{{8}}(?:[-_]{_HEX}{{4}}){{3}}[-_]{_HEX}{{12}}"
# A static pod's uid is a 32-digit hash of its manifest, without dashes.
_POD = re.compile(rf"(?:^|[/-])pod({_UID}|{_HEX}{{32}})(?=[./:]|$)")
_CONTAINER = re.compile(rf"(?:^|[/:])(?:[a-z][a-z0-9]*-)*({_HEX}{{64}})(?=\.scope|[/:]|$)")
_SLURM_V2 = re.compile(r"(?:^|/)(?:[^/]+_)?slurmstepd\.scope/job_(\d+)(?=/|$)")
_SLURM_V1 = re.compile(r"(?:^|/)slurm(?:_[^/]+)?/uid_\d+/job_(\d+)(?=/|$)")


@dataclass(frozen=True, slots=True)
class Owner:
    """Whom a process belongs to; an empty field means that the cgroup does not say."""

    container_id: str = ""
    pod_uid: str = ""
    slurm_job_id: str = ""


def owner_of(text: str) -> Owner:
    """The owner that the lines of a cgroup file name.

    With cgroup v1 a controller may leave a process in its root, so each line is asked and the first that knows a
    field gives it. Of nested containers the innermost counts: it is the one that the process sees.
    """
    container = pod = job = ""
    for line in text.splitlines():
        path = line.split(":", 2)[-1].removesuffix(" (deleted)")
        pod = pod or _last(_POD, path).replace("_", "-")
        container = container or _last(_CONTAINER, path)
        job = job or _last(_SLURM_V2, path) or _last(_SLURM_V1, path)
    return Owner(container, pod, job)


def is_private(text: str) -> bool:
    """Whether the file of a process outside any namespace of ours shows nothing but a namespace's own root.

    `0::/` is what a process inside a container with a private cgroup namespace sees of itself; then owners can only
    be told from the host's PID namespace.
    """
    return [line.split(":", 2)[-1] for line in text.splitlines()] == ["/"]


def _last(pattern: re.Pattern[str], path: str) -> str:
    found = pattern.findall(path)
    return found[-1] if found else ""
