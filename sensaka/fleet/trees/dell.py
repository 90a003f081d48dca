"""A server in the manner of Dell's iDRAC: `System.Embedded.1`, GPUs as `Video.Slot.n`.

The log is the manager's, and the firmware inventory lists what was installed before as well.
"""

from inventory.observations import CardValues
from sensaka.fleet.plan import SLOTS, CardPlan
from sensaka.fleet.trees.base import OK, ROOT, NodeTree, Resource, link, resource
from sensaka.fleet.trees.environment import add_new, add_old, new_sensor_paths
from sensaka.fleet.trees.parts import bare_uuid, environment, identity, processor_metrics

_FIRST_SLOT = 21  # the board numbers its accelerator slots from here


def fqdd(slot: int) -> str:
    """iDRAC's name of the device in a slot."""
    return f"Video.Slot.{_FIRST_SLOT + slot}-1"


class DellTree(NodeTree):
    """See the module."""

    system = f"{ROOT}/Systems/System.Embedded.1"
    chassis = f"{ROOT}/Chassis/System.Embedded.1"
    manager = f"{ROOT}/Managers/iDRAC.Embedded.1"
    reset_types = ("On", "ForceOff", "ForceRestart", "GracefulRestart", "GracefulShutdown", "Nmi", "PowerCycle")
    expand_levels = 1

    def root_properties(self) -> Resource:
        return {
            "Product": "Integrated Dell Remote Access Controller",
            "Oem": {"Dell": {"ServiceTag": self.node.system_serial[-7:], "ManagerMACAddress": "02:00:00:00:00:01"}},
        }

    def system_properties(self) -> Resource:
        return {"SKU": self.node.system_serial[-7:], "Oem": {"Dell": {"DellSystem": {"SystemGeneration": "16G"}}}}

    def manager_properties(self) -> Resource:
        return {"LogServices": link(f"{self.manager}/LogServices")}

    def cpu_paths(self) -> list[str]:
        return [f"{self.system}/Processors/CPU.Socket.{number}" for number in (1, 2)]

    def add_style(self) -> None:
        self.add_collection(f"{ROOT}/Systems", "ComputerSystem", lambda: [self.system])
        self.add_collection(f"{ROOT}/Managers", "Manager", lambda: [self.manager])
        self.add_collection(f"{ROOT}/Chassis", "Chassis", lambda: [self.chassis])
        self.add_collection(
            f"{self.system}/Processors",
            "Processor",
            lambda: [*self.cpu_paths(), *(f"{self.system}/Processors/{fqdd(slot)}" for slot in self.slots())],
        )
        self.add_collection(f"{self.system}/LogServices", "LogService", lambda: [])
        self.add_collection(f"{self.manager}/LogServices", "LogService", lambda: [f"{self.manager}/LogServices/Sel"])
        self.add_log(f"{self.manager}/LogServices/Sel", "SEL Log Service")
        self._add_chassis()
        for slot in range(SLOTS):
            self._add_gpu(slot)
        self.add_firmware(self._firmware)

    def _add_chassis(self) -> None:
        node, base = self.node, self.chassis
        self.add(
            base,
            lambda: resource(
                base, "Chassis.v1_21_0", "Computer System Chassis", ChassisType="RackMount",
                Manufacturer=f"Sensaka Simulated {node.chassis.vendor}", Model=node.chassis.product,
                SerialNumber=node.system_serial, Status=OK, Thermal=link(f"{base}/Thermal"),
                Power=link(f"{base}/Power"), Sensors=link(f"{base}/Sensors"),
                ThermalSubsystem=link(f"{base}/ThermalSubsystem"), PowerSubsystem=link(f"{base}/PowerSubsystem"),
                EnvironmentMetrics=link(f"{base}/EnvironmentMetrics"),
                Links={"ComputerSystems": [link(self.system)], "ManagedBy": [link(self.manager)]},
            ),
        )  # fmt: skip
        add_old(self, percent_fans=False)
        add_new(self)
        self.add_collection(f"{base}/Sensors", "Sensor", lambda: new_sensor_paths(self))

    def _add_gpu(self, slot: int) -> None:
        path = f"{self.system}/Processors/{fqdd(slot)}"
        self.add(path, self.for_card(slot, lambda card, values: self._gpu(path, slot, card)))
        self.add(
            f"{path}/EnvironmentMetrics",
            self.for_card(
                slot,
                lambda card, values: environment(
                    f"{path}/EnvironmentMetrics", card, values, {"Reading": _temperature(values)}
                ),
            ),
        )
        self.add(
            f"{path}/ProcessorMetrics",
            self.for_card(
                slot, lambda card, values: processor_metrics(f"{path}/ProcessorMetrics", values, nvidia=False)
            ),
        )

    def _gpu(self, path: str, slot: int, card: CardPlan) -> Resource:
        return resource(
            path,
            "Processor.v1_17_0",
            fqdd(slot),
            Model=card.kind.bmc_name,
            UUID=bare_uuid(card),
            FirmwareVersion=card.kind.vbios,
            EnvironmentMetrics=link(f"{path}/EnvironmentMetrics"),
            Metrics=link(f"{path}/ProcessorMetrics"),
            Links={"Chassis": link(self.chassis)},
            **identity(self, card, slot),
        )

    def _firmware(self) -> dict[str, tuple[str, str]]:
        chassis, vbios = self.node.chassis, self.node.kind.vbios
        items = {
            f"Installed-25227-{chassis.bmc_firmware}__iDRAC.Embedded.1-1": (
                "Integrated Dell Remote Access Controller", chassis.bmc_firmware,
            ),
            "Previous-25227-7.00.60.00__iDRAC.Embedded.1-1": (
                "Integrated Dell Remote Access Controller", "7.00.60.00",
            ),
            f"Installed-159-{chassis.bios}__BIOS.Setup.1-1": ("BIOS", chassis.bios),
        }  # fmt: skip
        for slot in range(SLOTS):
            items[f"Installed-0-{vbios}__{fqdd(slot)}"] = (f"{self.node.kind.bmc_name} - {fqdd(slot)}", vbios)
        return items


def _temperature(values: CardValues | None) -> float | None:
    return None if values is None else values.temperature
