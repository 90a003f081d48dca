"""A server with an HGX baseboard in the manner of Supermicro: two systems, two managers, GPUs below the second.

Traps on purpose: the temperature in a GPU's EnvironmentMetrics is a margin (TEMP_1), the real one is
the sensor TEMP_0; GPUs are numbered from 1; metric report values are text; and while the host is off
the whole baseboard answers 404.
"""

from datetime import UTC, datetime

from inventory.observations import CardValues
from sensaka.fleet.plan import SLOTS, CardPlan
from sensaka.fleet.trees.base import OK, ROOT, NodeTree, Resource, link, resource
from sensaka.fleet.trees.environment import add_old, sensor
from sensaka.fleet.trees.parts import (
    bare_uuid,
    environment,
    identity,
    memory_metrics,
    memory_module,
    processor_metrics,
)

HGX = f"{ROOT}/Systems/HGX_Baseboard_0"
_REPORT = f"{ROOT}/TelemetryService/MetricReports/HGX_PlatformEnvironmentMetrics_0"
_HGX_FIRMWARE = "HGX-22.10-1-rc80"


def gpu(slot: int) -> str:
    """The baseboard's name of the module in a slot."""
    return f"GPU_SXM_{slot + 1}"


class SupermicroTree(NodeTree):
    """See the module."""

    def root_properties(self) -> Resource:
        return {
            "Product": "Supermicro Redfish Service",
            "TelemetryService": link(f"{ROOT}/TelemetryService"),
            "Oem": {"Supermicro": {"DumpService": link(f"{ROOT}/Oem/Supermicro/DumpService")}},
        }

    def add_style(self) -> None:
        self.add_collection(f"{ROOT}/Systems", "ComputerSystem", lambda: [self.system, HGX])
        self.add_collection(f"{ROOT}/Managers", "Manager", lambda: [self.manager, f"{ROOT}/Managers/HGX_BMC_0"])
        self.add_collection(f"{self.system}/Processors", "Processor", self.cpu_paths)
        self.add_collection(f"{self.system}/LogServices", "LogService", lambda: [f"{self.system}/LogServices/Log1"])
        self.add_log(f"{self.system}/LogServices/Log1", "System Event Log")
        self._add_chassis()
        self._add_baseboard()
        for slot in range(SLOTS):
            self._add_gpu(slot)
        self._add_report()
        self.add_firmware(self._firmware)

    def get(self, path: str) -> Resource | None:
        """While the host is off the baseboard's own controller does not answer for its parts."""
        if not self.powered and "HGX_" in path:
            return None
        return super().get(path)

    def _firmware(self) -> dict[str, tuple[str, str]]:
        chassis = self.node.chassis
        items = {
            "BMC": ("BMC", chassis.bmc_firmware),
            "BIOS": ("BIOS", chassis.bios),
            "HGX_FW_BMC_0": ("HGX_FW_BMC_0", _HGX_FIRMWARE),
        }
        for slot in range(SLOTS):
            items[f"HGX_FW_{gpu(slot)}"] = (f"HGX_FW_{gpu(slot)}", self.node.kind.vbios)
        return items

    def _add_chassis(self) -> None:
        node = self.node
        self.add_collection(
            f"{ROOT}/Chassis",
            "Chassis",
            lambda: [
                self.chassis,
                f"{ROOT}/Chassis/HGX_Chassis_0",
                *(f"{ROOT}/Chassis/HGX_{gpu(slot)}" for slot in self.slots()),
            ],
        )
        self.add(
            self.chassis,
            lambda: resource(
                self.chassis, "Chassis.v1_22_0", "Computer System Chassis", ChassisType="RackMount",
                Manufacturer=f"Sensaka Simulated {node.chassis.vendor}", Model=node.chassis.product,
                SerialNumber=node.system_serial, Status=OK, Thermal=link(f"{self.chassis}/Thermal"),
                Power=link(f"{self.chassis}/Power"),
                Links={"ComputerSystems": [link(self.system)], "ManagedBy": [link(self.manager)]},
            ),
        )  # fmt: skip
        self.add(
            f"{ROOT}/Chassis/HGX_Chassis_0",
            lambda: resource(
                f"{ROOT}/Chassis/HGX_Chassis_0", "Chassis.v1_17_0", "HGX_Chassis_0", ChassisType="Module",
                Manufacturer="NVIDIA", Status=OK, Links={"ComputerSystems": [link(HGX)]},
            ),
        )  # fmt: skip
        add_old(self, percent_fans=False)

    def _add_baseboard(self) -> None:
        manager = f"{ROOT}/Managers/HGX_BMC_0"
        self.add(
            HGX,
            lambda: resource(
                HGX, "ComputerSystem.v1_17_0", "HGX_Baseboard_0", SystemType="Physical", Manufacturer="NVIDIA",
                PowerState="On", Status=OK, Processors=link(f"{HGX}/Processors"), Memory=link(f"{HGX}/Memory"),
                Links={"Chassis": [link(f"{ROOT}/Chassis/HGX_Chassis_0")], "ManagedBy": [link(manager)]},
            ),
        )  # fmt: skip
        self.add(
            manager,
            lambda: resource(
                manager, "Manager.v1_14_0", "HGX_BMC_0", ManagerType="BMC", FirmwareVersion=_HGX_FIRMWARE, Status=OK,
                Links={"ManagerForServers": [link(HGX)]},
            ),
        )  # fmt: skip
        self.add_collection(
            f"{HGX}/Processors",
            "Processor",
            lambda: [f"{HGX}/Processors/FPGA_0", *(f"{HGX}/Processors/{gpu(slot)}" for slot in self.slots())],
        )
        self.add_collection(f"{HGX}/Memory", "Memory", lambda: [self._memory(slot) for slot in self.slots()])
        self.add(
            f"{HGX}/Processors/FPGA_0",
            lambda: resource(
                f"{HGX}/Processors/FPGA_0", "Processor.v1_13_0", "Processor", ProcessorType="FPGA",
                Manufacturer="NVIDIA", Model="HGX FPGA", FirmwareVersion="2.53", Status=OK,
            ),
        )  # fmt: skip

    @staticmethod
    def _memory(slot: int) -> str:
        return f"{HGX}/Memory/{gpu(slot)}_DRAM_0"

    def _add_gpu(self, slot: int) -> None:
        path, chassis = f"{HGX}/Processors/{gpu(slot)}", f"{ROOT}/Chassis/HGX_{gpu(slot)}"
        memory = self._memory(slot)
        self.add(path, self.for_card(slot, lambda card, values: self._gpu(path, chassis, slot, card)))
        self.add(
            f"{path}/EnvironmentMetrics",
            self.for_card(
                slot,
                lambda card, values: environment(
                    f"{path}/EnvironmentMetrics", card, values,
                    {
                        "DataSourceUri": f"{chassis}/Sensors/HGX_{gpu(slot)}_TEMP_1",
                        "Reading": self._margin(card, values),
                    },
                ),
            ),
        )  # fmt: skip
        self.add(
            f"{path}/ProcessorMetrics",
            self.for_card(
                slot, lambda card, values: processor_metrics(f"{path}/ProcessorMetrics", values, nvidia=True)
            ),
        )
        self.add(
            memory, self.for_card(slot, lambda card, values: memory_module(memory, card, f"{memory}/MemoryMetrics"))
        )
        self.add(
            f"{memory}/MemoryMetrics",
            self.for_card(slot, lambda card, values: memory_metrics(f"{memory}/MemoryMetrics", card, values)),
        )
        self._add_module(slot, chassis, path)

    @staticmethod
    def _margin(card: CardPlan, values: CardValues | None) -> float | None:
        return None if values is None or values.temperature is None else card.kind.slowdown - values.temperature

    def _gpu(self, path: str, chassis: str, slot: int, card: CardPlan) -> Resource:
        return resource(
            path,
            "Processor.v1_13_0",
            "Processor",
            Model=card.kind.bmc_name,
            UUID=bare_uuid(card),
            FirmwareVersion=card.kind.vbios,
            MaxSpeedMHz=card.kind.top_clock,
            EnvironmentMetrics=link(f"{path}/EnvironmentMetrics"),
            Metrics=link(f"{path}/ProcessorMetrics"),
            Links={"Chassis": link(chassis), "Memory": [link(self._memory(slot))]},
            Oem={"Nvidia": {"MIGModeEnabled": card.number in self.world.partitions}},
            **identity(self, card, slot),
        )

    def _add_module(self, slot: int, chassis: str, processor: str) -> None:
        self.add(
            chassis,
            self.for_card(
                slot,
                lambda card, values: resource(
                    chassis, "Chassis.v1_17_0", gpu(slot), ChassisType="Module", Manufacturer="NVIDIA",
                    Model=card.kind.bmc_name, SerialNumber=card.serial, PartNumber=card.part_number,
                    UUID=bare_uuid(card), Status=self.status_of(card), Sensors=link(f"{chassis}/Sensors"),
                    Links={
                        "Processors": [link(processor)], "ComputerSystems": [link(HGX)],
                        "ContainedBy": link(f"{ROOT}/Chassis/HGX_Chassis_0"),
                    },
                ),
            ),
        )  # fmt: skip
        base = f"{chassis}/Sensors/HGX_{gpu(slot)}"
        names = ("TEMP_0", "TEMP_1", "Power_0", "Energy_0", "DRAM_0_Temp_0")
        self.add_collection(
            f"{chassis}/Sensors", "Sensor", lambda: [f"{base}_{name}" for name in names] if slot in self.slots() else []
        )
        for name in names:
            self.add(
                f"{base}_{name}",
                self.for_card(
                    slot,
                    lambda card, values, name=name: self._sensor(f"{base}_{name}", name, processor, card, values),  # type: ignore[misc]
                ),
            )

    def _reading(self, name: str, card: CardPlan, values: CardValues | None) -> float | None:
        if name == "TEMP_1":
            return self._margin(card, values)
        field = {
            "TEMP_0": "temperature", "Power_0": "power", "Energy_0": "energy", "DRAM_0_Temp_0": "memory_temperature",
        }[name]  # fmt: skip
        value = None if values is None else getattr(values, field)
        return None if value is None else float(value)

    def _sensor(self, path: str, name: str, processor: str, card: CardPlan, values: CardValues | None) -> Resource:
        kind, units = {
            "TEMP_0": ("Temperature", "Cel"), "TEMP_1": ("Temperature", "Cel"), "Power_0": ("Power", "W"),
            "Energy_0": ("EnergyJoules", "J"), "DRAM_0_Temp_0": ("Temperature", "Cel"),
        }[name]  # fmt: skip
        levels: dict[str, Resource] = {
            "TEMP_0": {"UpperCaution": {"Reading": card.kind.slowdown}},
            "TEMP_1": {"LowerCaution": {"Reading": -0.05}, "LowerCritical": {"Reading": -4}},
            "DRAM_0_Temp_0": {"UpperCaution": {"Reading": 95}},
        }
        return sensor(
            path, path.rsplit("/", 1)[-1].replace("_", " "), kind=kind, units=units,
            reading=self._reading(name, card, values), status=self.status_of(card), PhysicalContext="GPU",
            RelatedItem=[link(processor)], Thresholds=levels.get(name, {}),
            **({"ReadingBasis": "Headroom"} if name == "TEMP_1" else {}),
        )  # fmt: skip

    def _add_report(self) -> None:
        service = f"{ROOT}/TelemetryService"
        self.add(
            service,
            lambda: resource(
                service, "TelemetryService.v1_3_1", "Telemetry Service", MinCollectionInterval="PT1S", MaxReports=10,
                MetricReports=link(f"{service}/MetricReports"), Status=OK,
            ),
        )  # fmt: skip
        self.add_collection(f"{service}/MetricReports", "MetricReport", lambda: [_REPORT])
        self.add(_REPORT, self._report)

    def _report(self) -> Resource:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        values: list[Resource] = []
        for slot in self.slots():
            card = self.world.card_at(self.node, slot)
            if card is None:
                continue
            for name in ("TEMP_0", "TEMP_1", "Power_0", "Energy_0", "DRAM_0_Temp_0"):
                reading = self._reading(name, card, self.values(card))
                values.append({
                    "MetricProperty": f"{ROOT}/Chassis/HGX_{gpu(slot)}/Sensors/HGX_{gpu(slot)}_{name}",
                    "MetricValue": "nan" if reading is None else f"{reading:.6f}",
                    "Timestamp": now,
                })  # fmt: skip
        return resource(
            _REPORT, "MetricReport.v1_4_2", "HGX_PlatformEnvironmentMetrics_0", Timestamp=now, MetricValues=values
        )
