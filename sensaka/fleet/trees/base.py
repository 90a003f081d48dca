"""What the Redfish trees of all vendor styles share: links, collections, the host system, its power, its log.

A tree is a table of paths and functions; a resource is made when it is asked for, from the world as
it is then. A function that gives None answers 404, as for a slot without a card.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from inventory.observations import CardValues
from sensaka.fleet.plan import SLOTS, CardPlan, NodePlan
from sensaka.fleet.readings import card_values
from sensaka.fleet.seeds import hexadecimal
from sensaka.fleet.world import World

Resource = dict[str, Any]
Make = Callable[[], Resource | None]

ROOT = "/redfish/v1"
OK: Resource = {"Health": "OK", "State": "Enabled"}
LOST: Resource = {"Health": "Critical", "State": "UnavailableOffline"}
RESET_TYPES = ("On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "Nmi")
BOOT_TARGETS = ("None", "Pxe", "Hdd", "Cd", "Usb", "BiosSetup", "UefiHttp")
_OFF = frozenset({"ForceOff", "GracefulShutdown"})
_ON = frozenset({"On", "ForceOn"})


def link(path: str) -> Resource:
    """A reference to another resource."""
    return {"@odata.id": path}


def resource(path: str, kind: str, name: str, **properties: object) -> Resource:
    """A resource of the schema `kind` (`Processor.v1_13_0`)."""
    short = kind.split(".", 1)[0]
    return {
        "@odata.id": path,
        "@odata.type": f"#{kind}.{short}",
        "Id": path.rsplit("/", 1)[-1],
        "Name": name,
        **properties,
    }


def collection(path: str, kind: str, members: Sequence[str]) -> Resource:
    """A collection of the schema `kind` (`Processor`) with these member paths."""
    return {
        "@odata.id": path,
        "@odata.type": f"#{kind}Collection.{kind}Collection",
        "Name": f"{kind} Collection",
        "Members": [link(member) for member in members],
        "Members@odata.count": len(members),
    }


def problem(status: int, message_id: str, message: str) -> tuple[int, Resource]:
    """An error answer in the form of DSP0266 section 8.6."""
    entry = {"MessageId": message_id, "Message": message, "Severity": "Warning"}
    return status, {"error": {"code": message_id, "message": message, "@Message.ExtendedInfo": [entry]}}


class NodeTree:
    """The tree of one node; a vendor style fills `routes`. Implements the emulator's RedfishTree."""

    system = f"{ROOT}/Systems/1"
    chassis = f"{ROOT}/Chassis/1"
    manager = f"{ROOT}/Managers/1"
    reset_types: Sequence[str] = RESET_TYPES
    expand_levels = 2

    def __init__(self, world: World, node: NodePlan) -> None:
        self.world, self.node = world, node
        self.boot = {"BootSourceOverrideEnabled": "Disabled", "BootSourceOverrideTarget": "None"}
        self.routes: dict[str, Make] = {}
        self._add_common()
        self.add_style()

    # what styles build on

    def add_style(self) -> None:
        """Fill in what is particular to the vendor."""
        raise AssertionError("a vendor style says what its tree holds")

    def root_properties(self) -> Resource:
        """What the service root says beyond the common part."""
        return {}

    def system_properties(self) -> Resource:
        """What the host system says beyond the common part."""
        return {}

    def manager_properties(self) -> Resource:
        """What the BMC says of itself beyond the common part."""
        return {}

    def add(self, path: str, make: Make) -> None:
        """Serve `make()` at `path`."""
        self.routes[path] = make

    def add_collection(self, path: str, kind: str, members: Callable[[], Sequence[str]]) -> None:
        """Serve a collection whose members are asked for each time."""
        self.add(path, lambda: collection(path, kind, members()))

    def for_card(self, slot: int, make: Callable[[CardPlan, CardValues | None], Resource]) -> Make:
        """A resource of the card in a slot; 404 when it is empty. Values are None when the card gives none."""

        def made() -> Resource | None:
            card = self.world.card_at(self.node, slot)
            return None if card is None else make(card, self.values(card))

        return made

    def values(self, card: CardPlan) -> CardValues | None:
        """The card's sensors, or None when it is lost or the node is off."""
        if card.number in self.world.lost or not self.powered:
            return None
        return card_values(self.world, card)

    def status_of(self, card: CardPlan) -> Resource:
        """Health of a card as the BMC judges it."""
        return LOST if card.number in self.world.lost else OK

    def slots(self) -> list[int]:
        """Slots that hold a card."""
        return [slot for slot in range(SLOTS) if self.world.places[self.node.number][slot] is not None]

    @property
    def powered(self) -> bool:
        """Whether the host is on."""
        return self.world.nodes[self.node.number].power_on

    @property
    def inlet(self) -> float:
        """Inlet air in degrees C."""
        return round(self.node.site.inlet + 0.2 * (self.node.rack_position % 5), 1)

    # the emulator's protocol

    def get(self, path: str) -> Resource | None:
        """The resource at `path` as it is now."""
        make = self.routes.get(path)
        return None if make is None else make()

    def act(self, method: str, path: str, body: Resource) -> tuple[int, Resource | None]:
        """Reset and boot override of the host system; everything else is refused."""
        if method == "POST" and path == f"{self.system}/Actions/ComputerSystem.Reset":
            return self._reset(str(body.get("ResetType", "")))
        if method == "PATCH" and path == self.system:
            return self._override(body)
        if path not in self.routes:
            return problem(404, "Base.1.18.ResourceMissingAtURI", f"There is no resource at {path}.")
        return problem(405, "Base.1.18.OperationNotAllowed", f"{method} is not allowed on {path}.")

    def _reset(self, kind: str) -> tuple[int, Resource | None]:
        if kind not in self.reset_types:
            return problem(400, "Base.1.18.ActionParameterValueNotInList", f"ResetType {kind!r} is not supported.")
        state = self.world.nodes[self.node.number]
        if kind in _OFF:
            state.power_on = False
        elif kind == "Nmi":
            state.os_up = False  # the kernel stops and leaves a dump
        elif kind in _ON and state.power_on:
            return 204, None
        else:
            state.power_on = state.os_up = True
            self.world.boot(self.node)
            if self.boot["BootSourceOverrideEnabled"] == "Once":
                self.boot.update(BootSourceOverrideEnabled="Disabled", BootSourceOverrideTarget="None")
        self.world.note(self.node, f"System reset: {kind}", "OK")
        self.world.changed()
        return 204, None

    def _override(self, body: Resource) -> tuple[int, Resource | None]:
        wanted = body.get("Boot")
        if set(body) != {"Boot"} or not isinstance(wanted, dict) or not set(wanted) <= set(self.boot):
            return problem(400, "Base.1.18.PropertyUnknown", f"Only Boot with {', '.join(self.boot)} can be changed.")
        if wanted.get("BootSourceOverrideTarget", "None") not in BOOT_TARGETS or wanted.get(
            "BootSourceOverrideEnabled", "Once"
        ) not in ("Disabled", "Once", "Continuous"):
            return problem(400, "Base.1.18.PropertyValueNotInList", "The boot override is not supported.")
        self.boot.update(wanted)
        return 200, self.get(self.system)

    # what every style has

    def _add_common(self) -> None:
        node = self.node
        self.add(ROOT, self._root)
        self.add(
            f"{ROOT}/SessionService",
            lambda: resource(
                f"{ROOT}/SessionService", "SessionService.v1_1_8", "Session Service", SessionTimeout=1800,
                ServiceEnabled=True, Sessions=link(f"{ROOT}/SessionService/Sessions"),
            ),
        )  # fmt: skip
        self.add(self.system, self._system)
        self.add(
            self.manager,
            lambda: resource(
                self.manager, "Manager.v1_14_0", "Manager", ManagerType="BMC", Model=node.chassis.bmc_model,
                FirmwareVersion=node.chassis.bmc_firmware, Status=OK, DateTime=datetime.now(UTC).isoformat(),
                Links={"ManagerForServers": [link(self.system)], "ManagerForChassis": [link(self.chassis)]},
                SerialNumber=self.bmc_serial(), **self.manager_properties(),
            ),
        )  # fmt: skip
        self._add_processors()

    def _root(self) -> Resource:
        properties = self.root_properties()
        oem = {**properties.pop("Oem", {}), "Sensaka": {"Simulated": True}}
        return {
            **resource(ROOT, "ServiceRoot.v1_13_0", "Root Service"),
            "Id": "RootService",
            "RedfishVersion": "1.15.0",
            "Vendor": self.node.chassis.vendor,
            "UUID": self.node.system_uuid,
            "Systems": link(f"{ROOT}/Systems"),
            "Chassis": link(f"{ROOT}/Chassis"),
            "Managers": link(f"{ROOT}/Managers"),
            "UpdateService": link(f"{ROOT}/UpdateService"),
            "SessionService": link(f"{ROOT}/SessionService"),
            "Links": {"Sessions": link(f"{ROOT}/SessionService/Sessions")},
            "ProtocolFeaturesSupported": {
                "ExpandQuery": {
                    "ExpandAll": self.expand_levels > 0,
                    "Levels": self.expand_levels > 0,
                    "Links": self.expand_levels > 0,
                    "NoLinks": self.expand_levels > 0,
                    **({"MaxLevels": self.expand_levels} if self.expand_levels else {}),
                }
            },
            **properties,
            "Oem": oem,
        }

    def _system(self) -> Resource:
        node, state = self.node, self.world.nodes[self.node.number]
        reset = f"{self.system}/Actions/ComputerSystem.Reset"
        return resource(
            self.system, "ComputerSystem.v1_18_0", "System", SystemType="Physical",
            Manufacturer=f"Sensaka Simulated {node.chassis.vendor}", Model=node.chassis.product,
            SerialNumber=node.system_serial, UUID=node.system_uuid, BiosVersion=node.chassis.bios, HostName=node.name,
            PowerState="On" if state.power_on else "Off", Status=OK,
            Boot={**self.boot, "BootSourceOverrideTarget@Redfish.AllowableValues": list(BOOT_TARGETS)},
            Processors=link(f"{self.system}/Processors"), LogServices=link(f"{self.system}/LogServices"),
            Links={"Chassis": [link(self.chassis)], "ManagedBy": [link(self.manager)]},
            Actions={
                "#ComputerSystem.Reset": {
                    "target": reset, "ResetType@Redfish.AllowableValues": list(self.reset_types),
                }
            },
            **self.system_properties(),
        )  # fmt: skip

    def _add_processors(self) -> None:
        for path in self.cpu_paths():
            self.add(path, lambda path=path: self._processor(path))  # type: ignore[misc]

    def cpu_paths(self) -> list[str]:
        """The host's two processors."""
        return [f"{self.system}/Processors/CPU{number}" for number in (1, 2)]

    def _processor(self, path: str) -> Resource:
        return resource(
            path, "Processor.v1_13_0", "Processor", ProcessorType="CPU", Manufacturer="Intel(R) Corporation",
            Model="Intel(R) Xeon(R) Platinum 8480C", TotalCores=56, TotalThreads=112, Status=OK,
        )  # fmt: skip

    def add_log(self, path: str, name: str) -> None:
        """A log service with its entries: what happened to the node, newest last."""
        self.add(
            path,
            lambda: resource(
                path, "LogService.v1_3_0", name, MaxNumberOfRecords=200, OverWritePolicy="WrapsWhenFull", Status=OK,
                Entries=link(f"{path}/Entries"),
            ),
        )  # fmt: skip
        self.add(f"{path}/Entries", lambda: self._entries(f"{path}/Entries"))

    def _entries(self, path: str) -> Resource:
        entries = [
            resource(
                f"{path}/{number}", "LogEntry.v1_13_0", "Log Entry", EntryType="SEL", Severity=entry["severity"],
                Message=entry["text"], Created=datetime.fromtimestamp(entry["at"], UTC).isoformat(timespec="seconds"),
            )
            for number, entry in self.world.notes_of(self.node)
        ]  # fmt: skip
        return {**collection(path, "LogEntry", []), "Members": entries, "Members@odata.count": len(entries)}

    def add_firmware(self, items: Callable[[], dict[str, tuple[str, str]]]) -> None:
        """The update service with its inventory: id to (name, version)."""
        base = f"{ROOT}/UpdateService"
        self.add(
            base,
            lambda: resource(
                base, "UpdateService.v1_11_0", "Update Service", ServiceEnabled=True, Status=OK,
                FirmwareInventory=link(f"{base}/FirmwareInventory"),
            ),
        )  # fmt: skip
        path = f"{base}/FirmwareInventory"
        self.add_collection(path, "SoftwareInventory", lambda: [f"{path}/{name}" for name in items()])

        def one(identifier: str) -> Resource | None:
            found = items().get(identifier)
            if found is None:
                return None
            name, version = found
            return resource(
                f"{path}/{identifier}", "SoftwareInventory.v1_4_0", name, Version=version, Updateable=True, Status=OK
            )

        for identifier in items():
            self.add(f"{path}/{identifier}", lambda identifier=identifier: one(identifier))  # type: ignore[misc]

    def bmc_serial(self) -> str:
        """The serial number of the BMC's own board."""
        return "SIM" + hexadecimal(9, self.world.plan.seed, "bmc", self.node.name)
