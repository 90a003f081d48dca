"""The Job controller: plain and indexed Jobs, suspension, deadlines, failures."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from inventory.drivers.fake.kubernetes.admission import JOBS, PODS, admitted
from inventory.drivers.fake.kubernetes.amounts import finished
from inventory.drivers.fake.kubernetes.answers import Refused
from inventory.drivers.fake.kubernetes.kubelet import delete_pod, drop_finalizer
from inventory.drivers.fake.kubernetes.scheduling import condition, set_condition
from inventory.drivers.fake.kubernetes.store import Object, Store, timestamp

INDEX = "batch.kubernetes.io/job-completion-index"
TRACKING = "batch.kubernetes.io/job-tracking"
FOREGROUND = "foregroundDeletion"


def is_over(job: Object) -> bool:
    """Whether a Job is Complete or Failed."""
    return any((condition(job, name) or {}).get("status") == "True" for name in ("Complete", "Failed"))


def owned_by(pods: list[Object]) -> dict[str, list[Object]]:
    """Pods by the UID of their controller."""
    found: dict[str, list[Object]] = {}
    for pod in pods:
        for owner in pod["metadata"].get("ownerReferences", []):
            if owner.get("controller"):
                found.setdefault(owner["uid"], []).append(pod)
    return found


def work(store: Store) -> None:
    """One look at every Job."""
    jobs = store.all(JOBS)
    if not jobs:
        return
    pods = owned_by(store.all(PODS))
    for job in jobs:
        _Look(store, job, pods.get(job["metadata"]["uid"], [])).work()


class _Look:
    """One look at one Job."""

    def __init__(self, store: Store, job: Object, pods: list[Object]) -> None:
        self._store, self._job = store, job
        self._spec: dict[str, Any] = job["spec"]
        self._pods = pods
        self._status: dict[str, Any] = dict(job.get("status", {}))
        self._active = [pod for pod in pods if not finished(pod) and not pod["metadata"].get("deletionTimestamp")]

    def work(self) -> None:
        if self._job["metadata"].get("deletionTimestamp"):
            return  # the collector of garbage removes it with its pods
        broken = self._count()
        told = (condition(self._job, "FailureTarget") or {}).get("reason", "")
        reason = "" if is_over(self._job) else told or broken or self._overdue()
        if reason:
            self._fail(reason)
        elif not is_over(self._job):
            if self._spec.get("suspend"):
                self._suspend()
            else:
                self._run()
        self._note()

    def _count(self) -> str:
        """Counts pods that ended; the reason why the Job failed by one of them, "" for none."""
        broken = ""
        for pod in self._pods:
            if not finished(pod) or TRACKING not in pod["metadata"].get("finalizers", []):
                continue
            drop_finalizer(self._store, pod)
            if pod["status"]["phase"] == "Succeeded":
                self._succeeded(pod)
                continue
            action = self._policy(pod)
            if action == "Ignore":
                continue
            self._status["failed"] = self._status.get("failed", 0) + 1
            if action == "FailJob":
                broken = "PodFailurePolicy"
            elif self._status["failed"] > self._spec["backoffLimit"]:
                broken = broken or "BackoffLimitExceeded"
        return broken

    def _succeeded(self, pod: Object) -> None:
        self._status["succeeded"] = self._status.get("succeeded", 0) + 1
        index = pod["metadata"].get("annotations", {}).get(INDEX)
        if index is not None:
            done = {one for one in self._status.get("completedIndexes", "").split(",") if one} | {index}
            self._status["completedIndexes"] = ",".join(sorted(done, key=int))

    def _policy(self, pod: Object) -> str:
        for rule in (self._spec.get("podFailurePolicy") or {}).get("rules", []):
            for pattern in rule.get("onPodConditions", []):
                told = condition(pod, pattern["type"])
                if told is not None and told["status"] == pattern.get("status", "True"):
                    return str(rule["action"])
        return "Count"

    def _overdue(self) -> str:
        limit, started = self._spec.get("activeDeadlineSeconds"), self._status.get("startTime")
        if limit is None or not started or self._spec.get("suspend"):
            return ""
        late = datetime.now(UTC) - datetime.fromisoformat(started) >= timedelta(seconds=limit)
        return "DeadlineExceeded" if late else ""

    def _fail(self, reason: str) -> None:
        """First the target, which says why pods are deleted, and Failed when they are gone."""
        self._condition("FailureTarget", "True", reason=reason)
        for pod in self._active:
            delete_pod(self._store, pod)
        if not self._active and all(finished(pod) for pod in self._pods):
            self._condition("Failed", "True", reason=reason)

    def _suspend(self) -> None:
        """Pods that suspension removes count for nothing: their finalizer goes first."""
        for pod in self._active:
            drop_finalizer(self._store, pod)
            delete_pod(self._store, pod)
        self._active = []
        self._status.pop("startTime", None)
        self._condition("Suspended", "True", reason="JobSuspended", message="Job suspended")

    def _run(self) -> None:
        if (condition({"status": self._status}, "Suspended") or {}).get("status") == "True":
            self._condition("Suspended", "False", reason="JobResumed", message="Job resumed")
        self._status.setdefault("startTime", timestamp())
        wanted = self._spec.get("completions") or 1
        if self._status.get("succeeded", 0) >= wanted:
            self._status["completionTime"] = self._status.get("completionTime") or timestamp()
            for name in ("SuccessCriteriaMet", "Complete"):
                self._condition(name, "True", reason="CompletionsReached")
            return
        for index in self._missing(wanted):
            self._make(index)

    def _missing(self, wanted: int) -> Sequence[int | None]:
        """The indexes, or None for each plain pod, that should run and don't. A pod that ends is waited for."""
        ending = [pod for pod in self._pods if not finished(pod) and pod["metadata"].get("deletionTimestamp")]
        room = self._spec["parallelism"] - len(self._active)
        if self._spec["podReplacementPolicy"] == "Failed":
            room -= len(ending)
        if self._spec["completionMode"] != "Indexed":
            left = wanted - self._status.get("succeeded", 0) - len(self._active)
            return [None] * max(0, min(room, left))
        done = {int(one) for one in self._status.get("completedIndexes", "").split(",") if one}
        taken = {int(pod["metadata"]["annotations"][INDEX]) for pod in (*self._active, *ending)}
        return [index for index in range(wanted) if index not in done | taken][: max(0, room)]

    def _make(self, index: int | None) -> None:
        meta, template = self._job["metadata"], self._spec["template"]
        labels = {**template.get("metadata", {}).get("labels", {}), "batch.kubernetes.io/job-name": meta["name"]}
        labels |= {"job-name": meta["name"], "batch.kubernetes.io/controller-uid": meta["uid"]}
        annotations = dict(template.get("metadata", {}).get("annotations", {}))
        stem = meta["name"]
        if index is not None:
            stem = f"{stem}-{index}"
            labels[INDEX] = annotations[INDEX] = str(index)
        pod = {
            "metadata": {
                "generateName": f"{stem}-",
                "namespace": meta["namespace"],
                "labels": labels,
                "annotations": annotations,
                "finalizers": [TRACKING],
                "ownerReferences": [owner_of(self._job, "Job", "batch/v1")],
            },
            "spec": dict(template["spec"]),
        }
        try:
            self._active.append(self._store.create(PODS, admitted(self._store, PODS, pod)))
        except Refused as error:
            self._condition("FailedCreate", "True", reason="FailedCreate", message=str(error))

    def _condition(self, name: str, status: str, **fields: Any) -> None:
        value = {"status": self._status}
        self._status["conditions"] = [dict(one) for one in self._status.get("conditions", [])]
        set_condition(value, name, status, **fields)

    def _note(self) -> None:
        meta = self._job["metadata"]
        current = owned_by(self._store.all(PODS, meta["namespace"])).get(meta["uid"], [])
        open_pods = [pod for pod in current if not finished(pod)]
        ending = sum(bool(pod["metadata"].get("deletionTimestamp")) for pod in open_pods)
        self._status |= {"active": len(open_pods) - ending, "terminating": ending}
        if not self._status["active"]:
            del self._status["active"]

        def edit(value: Object) -> None:
            value["status"] = self._status

        self._store.change(JOBS, meta["namespace"], meta["name"], edit)


def owner_of(value: Object, kind: str, api_version: str) -> Object:
    """The reference that a controller's objects have to it."""
    meta = value["metadata"]
    fixed = {"apiVersion": api_version, "kind": kind, "controller": True, "blockOwnerDeletion": True}
    return {**fixed, "name": meta["name"], "uid": meta["uid"]}
