"""What the API server fills in, and what it says no to, before an object is kept."""

import re
from fractions import Fraction
from typing import Any

from inventory.drivers.fake.kubernetes import answers
from inventory.drivers.fake.kubernetes.amounts import asked, finished, is_extended, number
from inventory.drivers.fake.kubernetes.kinds import KINDS, Kind
from inventory.drivers.fake.kubernetes.store import Object, Store

PODS, JOBS = KINDS["", "pods"], KINDS["batch", "jobs"]
NAMESPACES, QUOTAS = KINDS["", "namespaces"], KINDS["", "resourcequotas"]
CLASSES = KINDS["scheduling.k8s.io", "priorityclasses"]
_NAME = re.compile(r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")
_NOT_READY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def admitted(store: Store, kind: Kind, value: Object) -> Object:
    """The object with its defaults; Refused (403, 404, 422) where it can't be kept."""
    meta = value.setdefault("metadata", {})
    name = meta.get("name") or meta.get("generateName", "")
    if not _NAME.match(meta.get("name") or "x") or not name or len(name) > 253:
        raise answers.invalid(kind, name, [("metadata.name", f'Invalid value: "{name}"')])
    if kind.namespaced and store.find(NAMESPACES, "", meta.get("namespace", "")) is None:
        raise answers.not_found("namespaces", meta.get("namespace", ""))
    if kind is NAMESPACES:
        meta["labels"] = {"kubernetes.io/metadata.name": name, **meta.get("labels", {})}
        value |= {"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
    elif kind is PODS:
        _pod(store, value, name)
    elif kind is JOBS:
        _job(value, name)
    return value


def _pod(store: Store, pod: Object, name: str) -> None:
    spec = pod["spec"]
    faults = _faults(spec, "spec")
    if faults:
        raise answers.invalid(PODS, name, faults)
    for container in spec.get("containers") or ():
        resources = container.setdefault("resources", {})
        if resources.get("limits"):
            resources["requests"] = {**resources["limits"], **resources.get("requests", {})}
    _priority(store, spec, name)
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("schedulerName", "default-scheduler")
    taints = [one.get("key") for one in spec.get("tolerations", [])]
    spec["tolerations"] = [
        *spec.get("tolerations", []),
        *(
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for key in _NOT_READY
            if key not in taints
        ),
    ]
    pod["status"] = {"phase": "Pending", "qosClass": "Burstable"}
    _within_quota(store, pod, name)


def _faults(spec: Object, at: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for place, container in enumerate(spec.get("containers") or ()):
        for section in ("limits", "requests"):
            given: dict[str, Any] = (container.get("resources") or {}).get(section) or {}
            for resource, value in given.items():
                if is_extended(resource) and number(value).denominator != 1:
                    told = f'Invalid value: "{int(number(value) * 1000)}m": must be an integer'
                    found += [
                        (f"{at}.containers[{place}].resources.{one}[{resource}]", told)
                        for one in (("limits", "requests") if section == "limits" else ("requests",))
                    ]
    terms = _terms(spec)
    for term in terms:
        for field in term.get("matchFields", []):
            if len(field.get("values", [])) != 1:
                told = (
                    "Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
                )
                found.append((f"{at}.affinity.nodeAffinity.matchFields", told))
    return found


def _terms(spec: Object) -> list[Object]:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms: list[Object] = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get(
        "nodeSelectorTerms", []
    )
    return terms


def _priority(store: Store, spec: Object, name: str) -> None:
    wanted = spec.get("priorityClassName", "")
    if not wanted:
        spec.setdefault("priority", 0)
        return
    found = store.find(CLASSES, "", wanted)
    if found is None:
        raise answers.rejected(PODS, name, f"no PriorityClass with name {wanted} was found")
    spec["priority"] = found.get("value", 0)


def _within_quota(store: Store, pod: Object, name: str) -> None:
    namespace = pod["metadata"]["namespace"]
    quotas = store.all(QUOTAS, namespace)
    if not quotas:
        return
    used = used_in(store, namespace)
    wanted = counted(pod["spec"])
    for quota in quotas:
        hard = {key: number(value) for key, value in quota.get("spec", {}).get("hard", {}).items()}
        over = [key for key in hard if wanted.get(key) and used.get(key, Fraction(0)) + wanted[key] > hard[key]]
        if over:
            told = [
                f"{label}: " + ",".join(f"{key}={values.get(key, Fraction(0))}" for key in over)
                for label, values in (("requested", wanted), ("used", used), ("limited", hard))
            ]
            raise answers.rejected(PODS, name, f"exceeded quota: {quota['metadata']['name']}, {', '.join(told)}")


def counted(pod_spec: Object) -> dict[str, Fraction]:
    """What one pod counts against a quota."""
    return {"pods": Fraction(1), **{f"requests.{name}": value for name, value in asked(pod_spec).items()}}


def used_in(store: Store, namespace: str) -> dict[str, Fraction]:
    """What the unfinished pods of a namespace count together."""
    used: dict[str, Fraction] = {}
    for pod in store.all(PODS, namespace):
        if not finished(pod):
            for key, value in counted(pod["spec"]).items():
                used[key] = used.get(key, Fraction(0)) + value
    return used


def _job(job: Object, name: str) -> None:
    if len(name) > 63:
        raise answers.invalid(JOBS, name, [("metadata.name", "must be no more than 63 characters")])
    spec = job["spec"]
    template = spec["template"]
    faults = _faults(template["spec"], "spec.template.spec")
    if template["spec"].get("restartPolicy") not in ("Never", "OnFailure"):
        faults.append(("spec.template.spec.restartPolicy", 'Unsupported value: "Always"'))
    if spec.get("podFailurePolicy") and template["spec"].get("restartPolicy") != "Never":
        faults.append(("spec.template.spec.restartPolicy", 'only "Never" is supported with podFailurePolicy'))
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        faults.append(("spec.completions", "Required value: when completion mode is Indexed"))
    if faults:
        raise answers.invalid(JOBS, name, faults)
    spec.setdefault("parallelism", 1)
    spec.setdefault("completions", 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed")
    job["status"] = {}
