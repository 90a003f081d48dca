"""A tree of Redfish resources that also acts: what the emulator serves.

The server knows HTTP, sessions, queries and faults; a tree knows resources. A fleet simulator brings
its own tree; `StaticTree` is a folder of recorded or hand-made resources with working actions.
"""

import copy
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from inventory.drivers.fake.redfish.power import BootRecord, Refused, find_reset_values, plan_reset
from inventory.drivers.fake.redfish.tasks import TaskBoard

Resource = dict[str, Any]
Answer = tuple[int, Resource | None]

_FIXED = frozenset({"Id", "Name", "UUID", "SerialNumber", "PowerState", "Status", "Members", "Actions", "Links"})


class RedfishTree(Protocol):
    """What a server serves. Paths have no trailing slash and no query."""

    def get(self, path: str) -> Resource | None:
        """The resource at `path`; None is 404."""
        ...

    def act(self, method: str, path: str, body: Resource) -> Answer:
        """Answers POST, PATCH, PUT and DELETE: status and body."""
        ...


def problem(message_id: str, message: str) -> Resource:
    """An error body in the form of DSP0266 section 8.6."""
    entry = {"MessageId": message_id, "Message": message, "Severity": "Warning"}
    return {"error": {"code": message_id, "message": message, "@Message.ExtendedInfo": [entry]}}


class StaticTree:
    """Resources by path that react to Reset, Boot, ClearLog and SimpleUpdate.

    `reset_seconds` is how long PowerState lags behind a reset; `update_seconds` how long an update
    task runs. `boots` lists what each power-on booted from, so a test can see an override honoured.
    """

    def __init__(
        self,
        resources: Mapping[str, Resource],
        *,
        reset_seconds: float = 0.0,
        update_seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.resources = {path.rstrip("/"): copy.deepcopy(dict(value)) for path, value in resources.items()}
        self.boots: list[BootRecord] = []
        self._reset_seconds = reset_seconds
        self._clock = clock
        self._pending: dict[str, tuple[float, str]] = {}
        self._tasks = TaskBoard(self.resources, seconds=update_seconds, clock=clock)

    def get(self, path: str) -> Resource | None:
        """The resource as it is now: power transitions and tasks that are due have happened."""
        if path in self._pending:
            self._settle(path)
        if path.startswith(("/redfish/v1/TaskService", "/redfish/v1/UpdateService")):
            self._tasks.advance()
        return self.resources.get(path)

    def act(self, method: str, path: str, body: Resource) -> Answer:
        """PATCH of known properties and the actions named above; the rest is refused."""
        try:
            if method == "PATCH":
                return self._patch(path, body)
            if method == "POST":
                return self._post(path, body)
        except Refused as refusal:
            return refusal.status, problem(refusal.message_id, str(refusal))
        return 405, problem("Base.1.18.OperationNotAllowed", f"{method} is not allowed on {path}.")

    def _post(self, path: str, body: Resource) -> Answer:
        owner, _, action = path.rpartition("/Actions/")
        if action == "UpdateService.SimpleUpdate":
            return 202, self._tasks.start(body)
        resource = self.resources.get(owner)
        if resource is None:
            return 404, problem("Base.1.18.ResourceMissingAtURI", f"There is no resource at {path}.")
        if action == "ComputerSystem.Reset":
            return self._reset(owner, resource, body)
        if action == "LogService.ClearLog":
            return self._clear_log(resource)
        return 400, problem("Base.1.18.ActionNotSupported", f"The action {action or path} is not supported.")

    def _reset(self, path: str, system: Resource, body: Resource) -> Answer:
        self._settle(path)
        allowed = find_reset_values(system, self.resources)
        passing, final, boot = plan_reset(str(body.get("ResetType", "")), str(system.get("PowerState")), allowed)
        if boot:
            self.boots.append(BootRecord.honour(path, system))
        if self._reset_seconds > 0 and passing:
            system["PowerState"] = passing
            self._pending[path] = (self._clock() + self._reset_seconds, final)
        else:
            system["PowerState"] = final
        return 204, None

    def _settle(self, path: str) -> None:
        due, state = self._pending.get(path, (float("inf"), ""))
        if self._clock() >= due:
            self.resources[path]["PowerState"] = state
            del self._pending[path]

    def _clear_log(self, service: Resource) -> Answer:
        entries = service.get("Entries", {}).get("@odata.id", "").rstrip("/")
        collection = self.resources.get(entries)
        if collection is not None:
            for member in collection.get("Members", []):
                self.resources.pop(str(member.get("@odata.id")), None)
            collection.update({"Members": [], "Members@odata.count": 0})
        return 204, None

    def _patch(self, path: str, body: Resource) -> Answer:
        resource = self.get(path)
        if resource is None:
            return 404, problem("Base.1.18.ResourceMissingAtURI", f"There is no resource at {path}.")
        changed = copy.deepcopy(resource)
        _merge(changed, body, "")
        resource.clear()
        resource.update(changed)
        return 200, resource


def _merge(target: Resource, changes: Resource, where: str) -> None:
    for name, value in changes.items():
        full = f"{where}/{name}"
        if name not in target:
            raise Refused(400, "Base.1.18.PropertyUnknown", f"The property {full} is not known.")
        if name.startswith("@") or (not where and name in _FIXED):
            raise Refused(403, "Base.1.18.PropertyNotWritable", f"The property {full} is read-only.")
        allowed = target.get(f"{name}@Redfish.AllowableValues")
        if isinstance(allowed, list) and value not in allowed:
            raise Refused(400, "Base.1.18.PropertyValueNotInList", f"The value {value!r} of {full} is not accepted.")
        if isinstance(value, dict) and isinstance(target[name], dict):
            _merge(target[name], value, full)
        else:
            target[name] = value
