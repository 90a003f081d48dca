"""A server in the manner of Lenovo's XCC: the new environment model only, numbers as text here and there.

A PATCH needs If-Match (the emulator's behaviour); a GPU's memory stands in its MemorySummary.
"""

from inventory.observations import CardValues
from sensaka.fleet.hardware import MEBIBYTE
from sensaka.fleet.plan import SLOTS, CardPlan
from sensaka.fleet.trees.base import OK, ROOT, NodeTree, Resource, link, resource
from sensaka.fleet.trees.environment import add_new, new_sensor_paths, sensor
from sensaka.fleet.trees.parts import bare_uuid, environment, identity, processor_metrics


class LenovoTree(NodeTree):
    """See the module."""

    reset_types = ("On", "Nmi", "GracefulShutdown", "GracefulRestart", "ForceOn", "ForceOff", "ForceRestart")
    expand_levels = 2

    def root_properties(self) -> Resource:
        return {"Product": self.node.chassis.product, "Oem": {"Lenovo": {"@odata.type": "#LenovoServiceRoot"}}}

    def system_properties(self) -> Resource:
        return {"Oem": {"Lenovo": {"SystemStatus": "OSBooted" if self.world.runs(self.node) else "SystemPowerOff"}}}

    def cpu_paths(self) -> list[str]:
        return [f"{self.system}/Processors/{number}" for number in (1, 2)]

    def add_style(self) -> None:
        self.add_collection(f"{ROOT}/Systems", "ComputerSystem", lambda: [self.system])
        self.add_collection(f"{ROOT}/Managers", "Manager", lambda: [self.manager])
        self.add_collection(f"{ROOT}/Chassis", "Chassis", lambda: [self.chassis])
        self.add_collection(
            f"{self.system}/Processors",
            "Processor",
            lambda: [*self.cpu_paths(), *(self._path(slot) for slot in self.slots())],
        )
        logs = f"{self.system}/LogServices"
        self.add_collection(logs, "LogService", lambda: [f"{logs}/PlatformLog"])
        self.add_log(f"{logs}/PlatformLog", "Platform Log")
        self._add_chassis()
        for slot in range(SLOTS):
            self._add_gpu(slot)
        self.add_firmware(self._firmware)

    def _path(self, slot: int) -> str:
        return f"{self.system}/Processors/GPU_{slot + 1}"

    def _sensor_paths(self) -> list[str]:
        base = f"{self.chassis}/Sensors"
        return [*new_sensor_paths(self), *(f"{base}/GPU_{slot + 1}_Temp" for slot in self.slots())]

    def _add_chassis(self) -> None:
        node, base = self.node, self.chassis
        self.add(
            base,
            lambda: resource(
                base, "Chassis.v1_22_0", "Chassis", ChassisType="RackMount",
                Manufacturer=f"Sensaka Simulated {node.chassis.vendor}", Model=node.chassis.product,
                SerialNumber=node.system_serial, Status=OK, Sensors=link(f"{base}/Sensors"),
                ThermalSubsystem=link(f"{base}/ThermalSubsystem"), PowerSubsystem=link(f"{base}/PowerSubsystem"),
                EnvironmentMetrics=link(f"{base}/EnvironmentMetrics"),
                Links={"ComputerSystems": [link(self.system)], "ManagedBy": [link(self.manager)]},
            ),
        )  # fmt: skip
        add_new(self)
        self.add_collection(f"{base}/Sensors", "Sensor", self._sensor_paths)

    def _add_gpu(self, slot: int) -> None:
        path, place = self._path(slot), f"{self.chassis}/Sensors/GPU_{slot + 1}_Temp"
        self.add(path, self.for_card(slot, lambda card, values: self._gpu(path, slot, card)))
        self.add(
            place,
            self.for_card(
                slot,
                lambda card, values: sensor(
                    place, f"GPU {slot + 1} Temp", kind="Temperature", units="Cel", reading=_temperature(values),
                    status=self.status_of(card), PhysicalContext="GPU", RelatedItem=[link(path)],
                    Thresholds={"UpperCaution": {"Reading": card.kind.slowdown}},
                ),
            ),
        )  # fmt: skip
        self.add(
            f"{path}/EnvironmentMetrics",
            self.for_card(
                slot,
                lambda card, values: environment(
                    f"{path}/EnvironmentMetrics", card, values,
                    {"DataSourceUri": place, "Reading": _temperature(values)},
                ),
            ),
        )  # fmt: skip
        self.add(
            f"{path}/ProcessorMetrics",
            self.for_card(
                slot, lambda card, values: processor_metrics(f"{path}/ProcessorMetrics", values, nvidia=False)
            ),
        )

    def _gpu(self, path: str, slot: int, card: CardPlan) -> Resource:
        return resource(
            path,
            "Processor.v1_15_0",
            f"GPU {slot + 1}",
            Model=card.kind.name,
            UUID=bare_uuid(card),
            FirmwareVersion=card.kind.vbios,
            MemorySummary={"TotalMemorySizeMiB": str(card.kind.memory // MEBIBYTE)},
            EnvironmentMetrics=link(f"{path}/EnvironmentMetrics"),
            Metrics=link(f"{path}/ProcessorMetrics"),
            Links={"Chassis": link(self.chassis)},
            **identity(self, card, slot),
        )

    def _firmware(self) -> dict[str, tuple[str, str]]:
        chassis = self.node.chassis
        items = {"BMC-Primary": ("BMC", chassis.bmc_firmware), "UEFI": ("UEFI BIOS", chassis.bios)}
        for slot in range(SLOTS):
            items[f"GPU_{slot + 1}"] = (f"GPU {slot + 1}", self.node.kind.vbios)
        return items


def _temperature(values: CardValues | None) -> float | None:
    return None if values is None else values.temperature
