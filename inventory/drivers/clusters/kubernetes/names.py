"""Names: what may stand in a path, the address of a job, and our own labels and annotations. Pure."""

import re
from typing import NamedTuple

from inventory.drivers.clusters.kubernetes.errors import refused, unsupported

CORDON = "sensaka/cordon"
MARK = "sensaka/mark"
USER = "sensaka/user"
TENANT = "sensaka/tenant"
SHARED = "sensaka/shared"  # on a namespace whose pods may reach every tenant (ingress, monitoring)
BY_TYPE = "sensaka/cards-by-type"
MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "sensaka"
INDEX = "batch.kubernetes.io/job-completion-index"
POD_INDEX = "apps.kubernetes.io/pod-index"
JOB_NAME = "batch.kubernetes.io/job-name"
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"
MIRROR = "kubernetes.io/config.mirror"

_SUBDOMAIN = re.compile(r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$", re.ASCII)  # RFC 1123
_LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", re.ASCII)
_VALUE = re.compile(r"^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$", re.ASCII)


class JobAddress(NamedTuple):
    """What acts steer: a kind in lower case and a name in a namespace."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.kind}/{self.name}"


def checked_name(what: str, name: str) -> str:
    """A name that can stand in a path, else KubernetesError."""
    if not _SUBDOMAIN.match(name) or ".." in name:
        raise unsupported(what, f"{name[:100]!r} is no name of Kubernetes")
    return name


def checked_namespace(name: str) -> str:
    """A namespace's name, else KubernetesError."""
    if not _LABEL.match(name):
        raise refused("namespace", f"{name[:100]!r} can't be a namespace: letters, digits and hyphens, 63 at most")
    return name


def checked_value(what: str, value: str) -> str:
    """A label's value, else KubernetesError."""
    if not _VALUE.match(value):
        raise refused(what, f"{value[:100]!r} can't be a label's value")
    return value


def parsed_job(job_id: str) -> JobAddress:
    """The address of a job, else KubernetesError."""
    parts = job_id.split("/")
    if len(parts) != 3 or not _LABEL.match(parts[0]) or not _LABEL.match(parts[1]) or not _SUBDOMAIN.match(parts[2]):
        raise unsupported("job", f"{job_id[:100]!r} is no address of a job (namespace/kind/name)")
    return JobAddress(*parts)


def slug(text: str, longest: int) -> str:
    """A text made fit for a name; "job" when nothing of it is left."""
    kept = re.sub(r"[^a-z0-9]+", "-", text.lower())[:longest].strip("-")
    return kept or "job"
