"""A server in the manner of HPE's iLO: numbered ids, links with a trailing slash, fans in percent.

A GPU's Model is its part number and its Name the product; it has no UUID; its temperature is a
numbered sensor named after it, and its power is not given.
"""

from typing import Any

from sensaka.fleet.plan import SLOTS, CardPlan
from sensaka.fleet.trees.base import OK, ROOT, NodeTree, Resource, link, resource
from sensaka.fleet.trees.environment import GetTemperature, add_old
from sensaka.fleet.trees.parts import identity

_FIRST_GPU = 3  # processors 1 and 2 are the host's
_FIRST_GPU_SENSOR = 20


class HpeTree(NodeTree):
    """See the module."""

    reset_types = ("On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi", "PushPowerButton", "GracefulRestart")
    expand_levels = 0

    def root_properties(self) -> Resource:
        chassis = self.node.chassis
        manager = {"ManagerType": chassis.bmc_model, "ManagerFirmwareVersion": chassis.bmc_firmware, "Status": OK}
        return {"Product": chassis.product, "Name": "HPE RESTful Root Service", "Oem": {"Hpe": {"Manager": [manager]}}}

    def cpu_paths(self) -> list[str]:
        return [f"{self.system}/Processors/{number}" for number in (1, 2)]

    def get(self, path: str) -> Resource | None:
        """iLO writes a slash behind every link."""
        found = super().get(path)
        return None if found is None else _slashed(found)

    def add_style(self) -> None:
        self.add_collection(f"{ROOT}/Systems", "ComputerSystem", lambda: [self.system])
        self.add_collection(f"{ROOT}/Managers", "Manager", lambda: [self.manager])
        self.add_collection(f"{ROOT}/Chassis", "Chassis", lambda: [self.chassis])
        self.add_collection(
            f"{self.system}/Processors",
            "Processor",
            lambda: [*self.cpu_paths(), *(self._path(slot) for slot in self.slots())],
        )
        self.add_collection(f"{self.system}/LogServices", "LogService", lambda: [f"{self.system}/LogServices/IML"])
        self.add_log(f"{self.system}/LogServices/IML", "Integrated Management Log")
        self._add_chassis()
        for slot in range(SLOTS):
            self._add_gpu(slot)
        self.add_firmware(self._firmware)

    def _path(self, slot: int) -> str:
        return f"{self.system}/Processors/{_FIRST_GPU + slot}"

    def _add_chassis(self) -> None:
        node, base = self.node, self.chassis
        self.add(
            base,
            lambda: resource(
                base, "Chassis.v1_22_0", "Computer System Chassis", ChassisType="RackMount",
                Manufacturer=f"Sensaka Simulated {node.chassis.vendor}", Model=node.chassis.product,
                SerialNumber=node.system_serial, Status=OK, Thermal=link(f"{base}/Thermal"),
                Power=link(f"{base}/Power"), Sensors=link(f"{base}/Sensors"),
                Links={"ComputerSystems": [link(self.system)], "ManagedBy": [link(self.manager)]},
            ),
        )  # fmt: skip
        gpus = [GetTemperature(f"{_FIRST_GPU_SENSOR + slot}-GPU {slot + 1}", slot) for slot in range(SLOTS)]
        add_old(self, percent_fans=True, more_temperatures=gpus)
        self.add_collection(
            f"{base}/Sensors",
            "Sensor",
            lambda: [f"{base}/Sensors/0", *(f"{base}/Sensors/{_FIRST_GPU_SENSOR + slot}" for slot in self.slots())],
        )
        self.add(
            f"{base}/Sensors/0", lambda: self._sensor(f"{base}/Sensors/0", "01-Inlet Ambient", "Intake", self.inlet)
        )

    def _add_gpu(self, slot: int) -> None:
        path, place = self._path(slot), f"{self.chassis}/Sensors/{_FIRST_GPU_SENSOR + slot}"
        self.add(path, self.for_card(slot, lambda card, values: self._gpu(path, slot, card)))
        self.add(
            place,
            self.for_card(
                slot,
                lambda card, values: self._sensor(
                    place, f"{_FIRST_GPU_SENSOR + slot}-GPU {slot + 1}", "GPU",
                    None if values is None else values.temperature,
                ),
            ),
        )  # fmt: skip

    @staticmethod
    def _sensor(path: str, name: str, context: str, reading: float | None) -> Resource:
        found = resource(
            path, "Sensor.v1_10_0", name, PhysicalContext=context, Reading=reading, Status=OK,
            Thresholds={"UpperCaution": {}, "UpperCritical": {"Reading": 92}, "UpperFatal": {}},
            Oem={"Hpe": {"@odata.type": "#HpeSeaOfSensors.v2_1_0.HpeSeaOfSensors"}},
        )  # fmt: skip
        return found

    def _gpu(self, path: str, slot: int, card: CardPlan) -> Resource:
        about = identity(self, card, slot)
        return {**resource(path, "Processor.v1_8_2", card.kind.name), "Model": card.part_number, **about}

    def _firmware(self) -> dict[str, tuple[str, str]]:
        chassis = self.node.chassis
        items = {
            "1": (chassis.bmc_model, f"{chassis.bmc_firmware} Jun 2024"),
            "2": ("System ROM", chassis.bios),
        }
        for slot in range(SLOTS):
            items[str(_FIRST_GPU + slot)] = (self.node.kind.name, self.node.kind.vbios)
        return items


def _slashed(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: f"{item}/" if key == "@odata.id" and isinstance(item, str) and "#" not in item else _slashed(item)
            for key, item in value.items()
        }
    return [_slashed(item) for item in value] if isinstance(value, list) else value
