"""The kinds of objects that the stand-in keeps, and how their paths are read."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind: its place in the API and whether it lives in namespaces."""

    plural: str
    kind: str
    group: str
    version: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """As it stands in objects."""
        return f"{self.group}/{self.version}" if self.group else self.version


def _kinds() -> dict[tuple[str, str], Kind]:
    listed = (
        ("", "v1", False, {"nodes": "Node", "namespaces": "Namespace"}),
        ("", "v1", True, {"pods": "Pod", "resourcequotas": "ResourceQuota", "limitranges": "LimitRange"}),
        ("batch", "v1", True, {"jobs": "Job"}),
        (
            "apps",
            "v1",
            True,
            {"replicasets": "ReplicaSet", "deployments": "Deployment", "statefulsets": "StatefulSet"},
        ),
        ("policy", "v1", True, {"poddisruptionbudgets": "PodDisruptionBudget"}),
        ("networking.k8s.io", "v1", True, {"networkpolicies": "NetworkPolicy"}),
        ("scheduling.k8s.io", "v1", False, {"priorityclasses": "PriorityClass"}),
        ("resource.k8s.io", "v1", True, {"resourceclaims": "ResourceClaim"}),
        ("resource.k8s.io", "v1", False, {"resourceslices": "ResourceSlice"}),
        ("kueue.x-k8s.io", "v1beta1", True, {"localqueues": "LocalQueue"}),
        ("scheduling.volcano.sh", "v1beta1", False, {"queues": "Queue"}),
    )
    return {
        (group, plural): Kind(plural, kind, group, version, namespaced)
        for group, version, namespaced, names in listed
        for plural, kind in names.items()
    }


KINDS = _kinds()
OPTIONAL_GROUPS = frozenset({"kueue.x-k8s.io", "scheduling.volcano.sh"})  # there only where somebody installed them


@dataclass(frozen=True, slots=True)
class Target:
    """What a path names: a kind, and as far as it goes a namespace, a name and a part (`status`, `eviction`)."""

    kind: Kind
    namespace: str
    name: str
    part: str


def target_of(path: str) -> Target | None:
    """None where the path names no kind."""
    parts = path.strip("/").split("/")
    if parts[:2] == ["api", "v1"]:
        group, rest = "", parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, rest = parts[1], parts[3:]
    else:
        return None
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    kind = KINDS.get((group, rest[0])) if rest else None
    if kind is None or len(rest) > 3 or (group and parts[2] != kind.version):
        return None
    return Target(kind, namespace, rest[1] if len(rest) > 1 else "", rest[2] if len(rest) > 2 else "")
