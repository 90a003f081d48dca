"""Update tasks of a static tree: SimpleUpdate makes one, time completes it, the version then changes."""

import re
from collections.abc import Callable
from typing import Any

from inventory.drivers.fake.redfish.power import Refused

Resource = dict[str, Any]

_TASKS = "/redfish/v1/TaskService/Tasks"
_INVENTORY = "/redfish/v1/UpdateService/FirmwareInventory/"
_VERSION = re.compile(r"[-_]v?([0-9][0-9A-Za-z.]*?)(?:\.(?:bin|fwpkg|exe|img|tar|zip))?$")


class TaskBoard:
    """Tasks inside `resources`; a task runs for `seconds` and then applies its image."""

    def __init__(self, resources: dict[str, Resource], *, seconds: float, clock: Callable[[], float]) -> None:
        self._resources = resources
        self._seconds = seconds
        self._clock = clock
        self._running: dict[str, tuple[float, Resource]] = {}
        self._made = 0

    def start(self, request: Resource) -> Resource:
        """A new running task. The version is read off the image's name (`name-1.2.3.bin`)."""
        image = request.get("ImageURI")
        if not isinstance(image, str) or not image:
            raise Refused(400, "Base.1.18.ActionParameterMissing", "ImageURI is missing.")
        targets = request.get("Targets", [])
        for target in targets:
            if not str(target).startswith(_INVENTORY) or target not in self._resources:
                raise Refused(400, "Base.1.18.ActionParameterUnknown", f"There is no component {target}.")
        self._made += 1
        path = f"{_TASKS}/{self._made}"
        task: Resource = {
            "@odata.id": path,
            "@odata.type": "#Task.v1_7_4.Task",
            "Id": str(self._made),
            "Name": "Firmware update",
            "TaskState": "Running",
            "TaskStatus": "OK",
            "PercentComplete": 0,
            "Messages": [],
        }
        self._resources[path] = task
        collection = self._resources.setdefault(
            _TASKS, {"@odata.id": _TASKS, "@odata.type": "#TaskCollection.TaskCollection", "Name": "Tasks"}
        )
        collection["Members"] = [*collection.get("Members", []), {"@odata.id": path}]
        collection["Members@odata.count"] = len(collection["Members"])
        self._running[path] = (self._clock(), request)
        return task

    def advance(self) -> None:
        """Moves every running task to where it should be by now."""
        for path, (started, request) in list(self._running.items()):
            task, age = self._resources[path], self._clock() - started
            if age < self._seconds:
                task["PercentComplete"] = int(100 * age / self._seconds)
                continue
            del self._running[path]
            task.update({"TaskState": "Completed", "PercentComplete": 100})
            self._apply(request)

    def _apply(self, request: Resource) -> None:
        version = _VERSION.search(str(request["ImageURI"]).rsplit("/", 1)[-1])
        for target in request.get("Targets", []) if version else []:
            self._resources[target]["Version"] = version[1] if version else ""
