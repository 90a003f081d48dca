"""Small Redfish trees of six makes, made up by us after what such services look like.

Each function returns resources by path; a test changes what it is about and serves the rest.
"""

from typing import Any

Tree = dict[str, dict[str, Any]]

V1 = "/redfish/v1"
ENABLED = {"State": "Enabled", "Health": "OK"}
RESET_TYPES = ["On", "ForceOff", "GracefulShutdown", "ForceRestart"]


def ref(path: str) -> dict[str, str]:
    return {"@odata.id": path}


def add(tree: Tree, path: str, kind: str, **fields: Any) -> str:
    """Puts a resource into the tree; gives its path."""
    tree[path] = {"@odata.id": path, "@odata.type": f"#{kind}.v1_0_0.{kind}", "Id": path.rsplit("/", 1)[-1], **fields}
    return path


def collect(tree: Tree, path: str, kind: str, members: list[str]) -> str:
    """Puts a collection into the tree; gives its path."""
    tree[path] = {
        "@odata.id": path,
        "@odata.type": f"#{kind}Collection.{kind}Collection",
        "Name": f"{kind} Collection",
        "Members": [ref(member) for member in members],
        "Members@odata.count": len(members),
    }
    return path


def root(tree: Tree, *, vendor: str = "", levels: int = 0, **fields: Any) -> None:
    """The service root with what every service has."""
    if levels:
        expand = {"NoLinks": True, "ExpandAll": True, "Levels": levels > 1, "MaxLevels": levels}
        fields["ProtocolFeaturesSupported"] = {"ExpandQuery": expand}
    add(
        tree,
        V1,
        "ServiceRoot",
        RedfishVersion="1.17.0",
        Systems=ref(f"{V1}/Systems"),
        Chassis=ref(f"{V1}/Chassis"),
        Managers=ref(f"{V1}/Managers"),
        UpdateService=ref(f"{V1}/UpdateService"),
        SessionService=ref(f"{V1}/SessionService"),
        Links={"Sessions": ref(f"{V1}/SessionService/Sessions")},
        **({"Vendor": vendor} if vendor else {}),
        **fields,
    )


def server(tree: Tree, *, system: str, chassis: str, manager: str, maker: str, model: str, **host: Any) -> None:
    """Host system, its chassis and its BMC; firmware with a BIOS and a BMC entry."""
    system_path, chassis_path, manager_path = (
        f"{V1}/Systems/{system}",
        f"{V1}/Chassis/{chassis}",
        f"{V1}/Managers/{manager}",
    )
    reset = {"target": f"{system_path}/Actions/ComputerSystem.Reset", "ResetType@Redfish.AllowableValues": RESET_TYPES}
    add(
        tree,
        system_path,
        "ComputerSystem",
        **{
            "Name": "System",
            "Manufacturer": maker,
            "Model": model,
            "SerialNumber": f"SN-{system}",
            "UUID": "4c4c4544-0042-3510-8050-b4c04f4d3333",
            "HostName": "gpu-01",
            "BiosVersion": "2.4.1",
            "PowerState": "On",
            "SystemType": "Physical",
            "Status": ENABLED,
            "Boot": {
                "BootSourceOverrideEnabled": "Disabled",
                "BootSourceOverrideTarget": "None",
                "BootSourceOverrideTarget@Redfish.AllowableValues": ["None", "Pxe", "Hdd"],
            },
            "Processors": ref(f"{system_path}/Processors"),
            "Links": {"Chassis": [ref(chassis_path)], "ManagedBy": [ref(manager_path)]},
            "Actions": {"#ComputerSystem.Reset": reset},
            **host,
        },
    )
    add(tree, chassis_path, "Chassis", Name="Chassis", ChassisType="RackMount", Manufacturer=maker, Status=ENABLED)
    add(
        tree,
        manager_path,
        "Manager",
        ManagerType="BMC",
        FirmwareVersion="7.10.30",
        Model="BMC",
        UUID="11111111-2222-3333-4444-555555555555",
    )
    collect(tree, f"{V1}/Systems", "ComputerSystem", [system_path])
    collect(tree, f"{V1}/Chassis", "Chassis", [chassis_path])
    collect(tree, f"{V1}/Managers", "Manager", [manager_path])
    cpu = add(
        tree, f"{system_path}/Processors/CPU.1", "Processor", ProcessorType="CPU", Model="Some CPU", Status=ENABLED
    )
    collect(tree, f"{system_path}/Processors", "Processor", [cpu])
    inventory = f"{V1}/UpdateService/FirmwareInventory"
    add(tree, f"{V1}/UpdateService", "UpdateService", FirmwareInventory=ref(inventory))
    bios = add(tree, f"{inventory}/BIOS", "SoftwareInventory", Name="BIOS", Version="2.4.1", Updateable=True)
    collect(tree, inventory, "SoftwareInventory", [bios])


def member(tree: Tree, path: str) -> None:
    """Adds an existing resource to the collection above it."""
    collection = tree[path.rsplit("/", 1)[0]]
    collection["Members"].append(ref(path))
    collection["Members@odata.count"] = len(collection["Members"])


def sensor(tree: Tree, chassis: str, name: str, kind: str, unit: str, reading: Any, **fields: Any) -> str:
    """A Sensor of a chassis, listed in its collection."""
    collection = f"{chassis}/Sensors"
    if collection not in tree:
        collect(tree, collection, "Sensor", [])
        tree[chassis]["Sensors"] = ref(collection)
    path = add(
        tree,
        f"{collection}/{name}",
        "Sensor",
        **{"Name": name, "ReadingType": kind, "ReadingUnits": unit, "Reading": reading, "Status": ENABLED, **fields},
    )
    member(tree, path)
    return path


def log(tree: Tree, owner: str, service: str, entries: list[dict[str, Any]]) -> str:
    """A log service with entries."""
    services = f"{owner}/LogServices"
    if services not in tree:
        collect(tree, services, "LogService", [])
        tree[owner]["LogServices"] = ref(services)
    path = add(
        tree, f"{services}/{service}", "LogService", ServiceEnabled=True, Entries=ref(f"{services}/{service}/Entries")
    )
    member(tree, path)
    paths = [add(tree, f"{path}/Entries/{entry['Id']}", "LogEntry", **entry) for entry in entries]
    collect(tree, f"{path}/Entries", "LogEntry", paths)
    return path


def uuid_of(number: int) -> str:
    return f"00000000-1111-2222-3333-{number:012x}"


# -- makes -------------------------------------------------------------------------------------------------------------


def dell(*, levels: int = 1) -> Tree:
    """iDRAC: cards as Video.Slot.n processors, both environment models, old firmware entries."""
    tree: Tree = {}
    root(tree, vendor="Dell", levels=levels)
    server(
        tree,
        system="System.Embedded.1",
        chassis="System.Embedded.1",
        manager="iDRAC.Embedded.1",
        maker="Dell Inc.",
        model="PowerEdge XE9680",
    )
    system, chassis = f"{V1}/Systems/System.Embedded.1", f"{V1}/Chassis/System.Embedded.1"
    for slot in (1, 2):
        path = add(
            tree,
            f"{system}/Processors/Video.Slot.{slot}-1",
            "Processor",
            ProcessorType="GPU",
            Manufacturer="NVIDIA Corporation",
            Model="NVIDIA H100 NVL",
            SerialNumber=f"165012345{slot} ",
            FirmwareVersion="96.00.5E.00.01",
            ProcessorMemory=[{"CapacityMiB": 95830, "MemoryType": "HBM3"}],
            Metrics=ref(f"{system}/Processors/Video.Slot.{slot}-1/ProcessorMetrics"),
            EnvironmentMetrics=ref(f"{system}/Processors/Video.Slot.{slot}-1/EnvironmentMetrics"),
            Status=ENABLED,
        )
        add(tree, f"{path}/ProcessorMetrics", "ProcessorMetrics", BandwidthPercent=None, OperatingSpeedMHz="1755")
        add(
            tree,
            f"{path}/EnvironmentMetrics",
            "EnvironmentMetrics",
            TemperatureCelsius={"Reading": 40.0 + slot},
            PowerWatts={"Reading": 310.5},
        )
        member(tree, path)
    sensor(tree, chassis, "SystemBoardInletTemp", "Temperature", "Cel", 23.0, PhysicalContext="Intake")
    tree[chassis]["Power"] = ref(f"{chassis}/Power")
    add(tree, f"{chassis}/Power", "Power", PowerControl=[{"MemberId": "PowerControl", "PowerConsumedWatts": 2140}])
    inventory = f"{V1}/UpdateService/FirmwareInventory"
    for own, version in (
        ("Installed-108255-96.00.5E.00.01__Video.Slot.1-1", "96.00.5E.00.01"),
        ("Previous-108255-96.00.1A.00.01__Video.Slot.1-1", "96.00.1A.00.01"),
        ("Available-159-2.5.0__BIOS.Setup.1-1", "2.5.0"),
    ):
        member(tree, add(tree, f"{inventory}/{own}", "SoftwareInventory", Name="NVIDIA H100 NVL", Version=version))
    log(
        tree,
        f"{V1}/Managers/iDRAC.Embedded.1",
        "Sel",
        [_entry("1", "2026-01-02T03:04:05-06:00", "Critical", "The power input is lost.")],
    )
    return tree


def hpe(*, levels: int = 1) -> Tree:
    """iLO: part numbers as model, PCIeDevices with firmware, slots in an own list, sensors without type."""
    tree: Tree = {}
    root(tree, vendor="HPE", levels=levels, Oem={"Hpe": {}})
    server(tree, system="1", chassis="1", manager="1", maker="HPE", model="ProLiant DL380a Gen11")
    system, chassis = f"{V1}/Systems/1", f"{V1}/Chassis/1"
    collect(tree, f"{chassis}/PCIeDevices", "PCIeDevice", [])
    collect(tree, f"{chassis}/Devices", "HpeServerDevice", [])
    tree[chassis] |= {
        "PCIeDevices": ref(f"{chassis}/PCIeDevices"),
        "Oem": {"Hpe": {"Links": {"Devices": ref(f"{chassis}/Devices")}}},
        "Thermal": ref(f"{chassis}/Thermal"),
        "Power": ref(f"{chassis}/Power"),
    }
    for number, slot in ((3, 14), (4, 16)):
        serial = f"17901250{slot}"
        facts = {
            "Manufacturer": "NVIDIA",
            "Model": "900-21010-0320-030",
            "Name": "NVIDIA H100 NVL",
            "PartNumber": "900-21010-0320-030",
        }
        processor = add(
            tree,
            f"{system}/Processors/{number}",
            "Processor",
            **facts,
            ProcessorType="GPU",
            SerialNumber=serial,
            Status=ENABLED,
        )
        member(tree, processor)
        device = f"{chassis}/PCIeDevices/{240 + number}"
        functions = collect(tree, f"{device}/PCIeFunctions", "PCIeFunction", [f"{device}/PCIeFunctions/1"])
        add(
            tree,
            f"{device}/PCIeFunctions/1",
            "PCIeFunction",
            DeviceClass="DisplayController",
            VendorId="0X10DE",
            DeviceId="0X2321",
        )
        add(
            tree,
            device,
            "PCIeDevice",
            **facts,
            SerialNumber=f"{serial}   ",
            FirmwareVersion="96.00.AF.00.02",
            PCIeFunctions=ref(functions),
            Status=ENABLED,
        )
        member(tree, device)
        member(
            tree,
            add(
                tree,
                f"{chassis}/Devices/{number}",
                "HpeServerDevice",
                Location=f"PCI-E Slot {slot}",
                SerialNumber=serial,
            ),
        )
    network = {
        "Manufacturer": "Nvidia",
        "Name": "ConnectX-7 200GE 2P NIC",
        "Model": "P65324-001",
        "SerialNumber": "IL1",
    }
    member(tree, add(tree, f"{chassis}/PCIeDevices/238", "PCIeDevice", **network, Status=ENABLED))
    temperatures = [
        {
            "@odata.id": f"{chassis}/Thermal#Temperatures/{number}",
            "MemberId": str(number),
            "Name": name,
            "ReadingCelsius": value,
            **more,
        }
        for number, (name, value, more) in enumerate(
            (
                (
                    "01-Inlet Ambient",
                    24,
                    {"PhysicalContext": "Intake", "Status": ENABLED, "UpperThresholdCritical": 42},
                ),
                ("05-P1 PMM 1-6", 0, {"Status": {"State": "Absent"}, "UpperThresholdCritical": 0}),
                ("22-P/S 1 Inlet", 20, {"Status": ENABLED}),
            )
        )
    ]
    add(
        tree,
        f"{chassis}/Thermal",
        "Thermal",
        Temperatures=temperatures,
        Fans=[{"MemberId": "0", "Name": "Fan 1", "Reading": 23, "ReadingUnits": "Percent", "Status": ENABLED}],
    )
    add(
        tree,
        f"{chassis}/Power",
        "Power",
        PowerControl=[
            {"MemberId": "0", "PowerConsumedWatts": 565},
            {"MemberId": "1", "Name": "CPU", "PowerConsumedWatts": 134},
        ],
    )
    ilo = {"Hpe": {"@odata.type": "#HpeSeaOfSensors.v2_1_0.HpeSeaOfSensors"}}
    for number, (name, value, context) in enumerate(
        (
            ("01-Inlet Ambient", 24.0, "Intake"),
            ("51.1-XLR8R 14-GPU ASIC", 55.0, "SystemBoard"),
            ("51.2-XLR8R 14-Memory", 60.0, "SystemBoard"),
        )
    ):
        path = sensor(
            tree,
            chassis,
            str(number),
            "Temperature",
            "Cel",
            value,
            Name=name,
            PhysicalContext=context,
            Oem=ilo,
            Thresholds={"UpperCaution": {}, "UpperCriticalUser": {"Reading": 0}},
        )
        del tree[path]["ReadingType"], tree[path]["ReadingUnits"]
    firmware = {
        "Name": "NVIDIA H100 NVL",
        "Version": "96.00.AF.00.02",
        "Oem": {"Hpe": {"DeviceContext": "PCI-E Slot 14"}},
    }
    member(tree, add(tree, f"{V1}/UpdateService/FirmwareInventory/7", "SoftwareInventory", **firmware))
    log(tree, system, "IML", [_entry("1", "2026-01-01T00:00:00Z", "OK", "IML cleared")])
    log(tree, system, "SL", [_entry("1", "2026-01-01T00:00:00Z", "OK", "somebody logged in")])
    return tree


def supermicro(*, levels: int = 0) -> Tree:
    """X13 with cards in PCIeDevices alone, absent sensors that read 0, and the log under Systems."""
    tree: Tree = {}
    root(tree, vendor="Supermicro", levels=levels)
    server(tree, system="1", chassis="1", manager="1", maker="Supermicro", model="SYS-421GE-TNRT")
    system, chassis = f"{V1}/Systems/1", f"{V1}/Chassis/1"
    collect(tree, f"{chassis}/PCIeDevices", "PCIeDevice", [])
    tree[chassis] |= {
        "PCIeDevices": ref(f"{chassis}/PCIeDevices"),
        "Thermal": ref(f"{chassis}/Thermal"),
        "PCIeSlots": ref(f"{chassis}/PCIeSlots"),
    }
    slots = []
    for number in (1, 2):
        device = add(
            tree,
            f"{chassis}/PCIeDevices/GPU{number}",
            "PCIeDevice",
            Manufacturer="NVIDIA",
            Model="NVIDIA L40S",
            Name=f"GPU{number}",
            SerialNumber=f"132422300{number}",
            FirmwareVersion="95.02.66.00.02",
            PCIeInterface={"PCIeType": "Gen4", "LanesInUse": 16},
            Status=ENABLED,
        )
        member(tree, device)
        slots.append(
            {
                "Location": {"PartLocation": {"ServiceLabel": f"CPU1 SLOT{number}"}},
                "Links": {"PCIeDevice": [ref(device)]},
            }
        )
    add(tree, f"{chassis}/PCIeSlots", "PCIeSlots", Slots=slots)
    absent = {
        "Name": "P2-DIMMA1 Temp",
        "ReadingCelsius": 0,
        "Status": {"State": "Absent"},
        "UpperThresholdCritical": 0,
        "LowerThresholdCritical": 0,
    }
    here = {
        "Name": "System Temp",
        "ReadingCelsius": 28,
        "Status": ENABLED,
        "UpperThresholdCritical": 85,
        "LowerThresholdCritical": -1,
        "UpperThresholdNonCritical": None,
    }
    add(
        tree,
        f"{chassis}/Thermal",
        "Thermal",
        Temperatures=[here, absent],
        Fans=[{"Name": "FAN1", "Reading": 8400, "ReadingUnits": "RPM", "Status": ENABLED}],
    )
    log(
        tree,
        system,
        "Log1",
        [_entry("2", "2026-01-01T00:00:02Z", "Warning", "second"), _entry("1", "2026-01-01T00:00:01Z", "OK", "first")],
    )
    return tree


def lenovo(*, levels: int = 2) -> Tree:
    """XCC: ids 1, inline members, cards as accelerators of a PCIe slot; PATCH needs If-Match."""
    tree: Tree = {}
    root(tree, vendor="Lenovo", levels=levels)
    server(tree, system="1", chassis="1", manager="1", maker="Lenovo", model="ThinkSystem SR680a V3")
    system = f"{V1}/Systems/1"
    path = add(
        tree,
        f"{system}/Processors/GPU1",
        "Processor",
        ProcessorType="Accelerator",
        Manufacturer="Advanced Micro Devices, Inc.",
        Model="AMD Instinct MI300X",
        SerialNumber="692251001234",
        UUID="01FFA2C1-0000-1000-8046-54C0A1B2C3D4",
        Location={"PartLocation": {"ServiceLabel": "OAM 1"}},
        MemorySummary={"TotalMemorySizeMiB": 196592},
        EnvironmentMetrics=ref(f"{system}/Processors/GPU1/EnvironmentMetrics"),
        Status=ENABLED,
    )
    add(
        tree,
        f"{path}/EnvironmentMetrics",
        "EnvironmentMetrics",
        TemperatureCelsius={"Reading": "47"},
        PowerWatts={"Reading": "312.5"},
        PowerLimitWatts={"SetPoint": 750, "Reading": 312.5, "AllowableMax": 750},
    )
    member(tree, path)
    fpga = add(
        tree,
        f"{system}/Processors/FPGA1",
        "Processor",
        ProcessorType="Accelerator",
        Model="Some FPGA",
        Manufacturer="Intel",
        Status=ENABLED,
    )
    member(tree, fpga)
    log(tree, system, "PlatformLog", [_entry("1", "2026-01-01T00:00:00+00:00", "OK", "power on")])
    log(tree, system, "AuditLog", [_entry("1", "2026-01-01T00:00:00+00:00", "OK", "login")])
    return tree


def ami(*, levels: int = 0) -> Tree:
    """MegaRAC: ids Self, every temperature marked Intake, a collection that lists what is not there."""
    tree: Tree = {}
    root(tree, vendor="AMI", levels=levels, Oem={"Ami": {}})
    server(tree, system="Self", chassis="Self", manager="Self", maker="Giga Computing", model="G593-SD0")
    system, chassis = f"{V1}/Systems/Self", f"{V1}/Chassis/Self"
    for number in (1, 2):
        path = add(
            tree,
            f"{system}/Processors/GPU_{number}",
            "Processor",
            ProcessorType="GPU",
            Manufacturer="NVIDIA",
            Model="NVIDIA H200",
            SerialNumber=f"16535{number}",
            UUID=uuid_of(number),
            FirmwareVersion="96.00.B0.00.01",
            Status=ENABLED,
        )
        member(tree, path)
    for name, value in (
        ("TEMP_MB_INLET", 22),
        ("TEMP_GPU_1", 41),
        ("TEMP_PSU0", 20),
        ("TEMP_NVME", 33),
        ("TEMP_INTB", 25),
    ):
        sensor(tree, chassis, name, "Temperature", "Cel", value, PhysicalContext="Intake")
    tree[f"{chassis}/Sensors"]["Members"].append(ref(f"{chassis}/Sensors/GONE"))
    return tree


def hgx(*, cards: int = 2, levels: int = 0, first: int = 1, name: str = "GPU_SXM_{}", reports: bool = True) -> Tree:
    """OpenBMC with an HGX baseboard: two systems, margins as TEMP_1, metric reports, ActionInfo."""
    tree: Tree = {}
    root(tree, levels=levels, TelemetryService=ref(f"{V1}/TelemetryService"))
    server(
        tree,
        system="System_0",
        chassis="Chassis_0",
        manager="BMC_0",
        maker="NVIDIA",
        model="P3809",
        LastResetTime="2026-01-01T00:00:00+00:00",
    )
    host, board = f"{V1}/Systems/System_0", f"{V1}/Systems/HGX_Baseboard_0"
    tree[host]["Actions"] = {
        "#ComputerSystem.Reset": {
            "target": f"{host}/Actions/ComputerSystem.Reset",
            "@Redfish.ActionInfo": f"{host}/ResetActionInfo",
        }
    }
    add(
        tree,
        f"{host}/ResetActionInfo",
        "ActionInfo",
        Parameters=[{"Name": "ResetType", "AllowableValues": [*RESET_TYPES, "PowerCycle"]}],
    )
    add(
        tree,
        board,
        "ComputerSystem",
        Name="HGX",
        SerialNumber="1650000000001",
        PowerState="On",
        Processors=ref(f"{board}/Processors"),
        Memory=ref(f"{board}/Memory"),
        SystemType="Physical",
    )
    member(tree, board)
    collect(tree, f"{board}/Processors", "Processor", [])
    collect(tree, f"{board}/Memory", "Memory", [])
    member(
        tree, add(tree, f"{board}/Processors/FPGA_0", "Processor", ProcessorType="FPGA", Model="FPGA", Status=ENABLED)
    )
    values: list[dict[str, Any]] = []
    for number in range(first, first + cards):
        values += _hgx_card(tree, board, number, name.format(number))
    sensor(tree, f"{V1}/Chassis/Chassis_0", "Chassis_0_Front_IO_Temp_0", "Temperature", "Cel", 24.5)
    add(tree, f"{V1}/Chassis/Chassis_0/EnvironmentMetrics", "EnvironmentMetrics", PowerWatts={"Reading": 3350.25})
    tree[f"{V1}/Chassis/Chassis_0"]["EnvironmentMetrics"] = ref(f"{V1}/Chassis/Chassis_0/EnvironmentMetrics")
    add(tree, f"{V1}/TelemetryService", "TelemetryService", MetricReports=ref(f"{V1}/TelemetryService/MetricReports"))
    collect(tree, f"{V1}/TelemetryService/MetricReports", "MetricReport", [])
    if reports:
        report = f"{V1}/TelemetryService/MetricReports/HGX_PlatformEnvironmentMetrics_0"
        member(tree, add(tree, report, "MetricReport", MetricValues=values))
    log(tree, host, "SEL", [])
    log(
        tree,
        board,
        "EventLog",
        [
            _entry(
                "5",
                "2026-02-03T04:05:06+00:00",
                "Critical",
                "The resource has errors.",
                MessageArgs=["GPU_SXM_1", "XID 79"],
            )
        ],
    )
    log(tree, host, "PostCodes", [_entry("B1-01", "2026-02-03T04:05:06+00:00", "OK", "boot code")])
    return tree


def _hgx_card(tree: Tree, board: str, number: int, own: str) -> list[dict[str, Any]]:
    chassis, path, memory = f"{V1}/Chassis/HGX_{own}", f"{board}/Processors/{own}", f"{board}/Memory/{own}_DRAM_0"
    add(
        tree,
        chassis,
        "Chassis",
        ChassisType="Module",
        Manufacturer="NVIDIA",
        SerialNumber=f"16529{number}",
        Status=ENABLED,
    )
    member(tree, chassis)
    related = [ref(path)]
    readings = {
        "TEMP_0": ("Temperature", "Cel", 30.0 + number, {"PhysicalContext": "GPU"}),
        "TEMP_1": (
            "Temperature",
            "Cel",
            55.0,
            {
                "ReadingBasis": "Headroom",
                "Thresholds": {"LowerCaution": {"Reading": 0}, "LowerCritical": {"Reading": -2}},
            },
        ),
        "DRAM_0_Temp_0": ("Temperature", "Cel", 40.0 + number, {"Thresholds": {"UpperCaution": {"Reading": 105.0}}}),
        "Power_0": ("Power", "W", 350.5, {}),
        "DRAM_0_Power_0": ("Power", "W", 33.0, {}),
        "Energy_0": ("EnergyJoules", "J", 5.5e7, {}),
    }
    values = []
    for suffix, (kind, unit, value, more) in readings.items():
        place = sensor(tree, chassis, f"HGX_{own}_{suffix}", kind, unit, value, RelatedItem=related, **more)
        values.append(
            {"MetricProperty": place, "MetricValue": f"{value:.6f}", "Timestamp": "2020-12-11T16:40:46.690+00:00"}
        )
    add(
        tree,
        path,
        "Processor",
        ProcessorType="GPU",
        Manufacturer="NVIDIA",
        Model="H100 80GB HBM3",
        SerialNumber=f"16529{number}",
        UUID=uuid_of(number),
        PartNumber="2330-885-A1",
        FirmwareVersion="96.00.89.00.01",
        Location={"PartLocation": {"ServiceLabel": f"SXM{number}"}},
        MemorySummary={"TotalMemorySizeMiB": 0},
        SystemInterface={"PCIe": {"PCIeType": "Gen5", "LanesInUse": 16}},
        Metrics=ref(f"{path}/ProcessorMetrics"),
        EnvironmentMetrics=ref(f"{path}/EnvironmentMetrics"),
        Links={"Chassis": ref(chassis), "Memory": [ref(memory)]},
        Oem={"Nvidia": {"MIGModeEnabled": False}},
        Status=ENABLED,
    )
    member(tree, path)
    margin = {"DataSourceUri": f"{chassis}/Sensors/HGX_{own}_TEMP_1", "Reading": 55.0}
    limit = {"SetPoint": 700, "Reading": 350.5, "AllowableMax": 700, "ControlMode": "Automatic"}
    add(
        tree,
        f"{path}/EnvironmentMetrics",
        "EnvironmentMetrics",
        TemperatureCelsius=margin,
        PowerWatts={"Reading": 350.0},
        EnergykWh={"Reading": 15.0},
        PowerLimitWatts=limit,
    )
    errors = {"LifeTime": {"CorrectableECCErrorCount": 2, "UncorrectableECCErrorCount": 1}}
    oem = {
        "SMActivityPercent": 71.5,
        "TensorCoreActivityPercent": 30.25,
        "PCIeRawTxBandwidthGbps": 8.0,
        "ThrottleReasons": ["NA"],
    }
    add(
        tree,
        f"{path}/ProcessorMetrics",
        "ProcessorMetrics",
        BandwidthPercent=88,
        OperatingSpeedMHz=1980,
        CacheMetricsTotal=errors,
        PCIeErrors={"ReplayCount": 3},
        Oem={"Nvidia": oem},
    )
    add(
        tree,
        memory,
        "Memory",
        CapacityMiB=81559,
        MemoryType="DRAM",
        Metrics=ref(f"{memory}/MemoryMetrics"),
        Status=ENABLED,
    )
    member(tree, memory)
    add(
        tree,
        f"{memory}/MemoryMetrics",
        "MemoryMetrics",
        BandwidthPercent=12.5,
        CapacityUtilizationPercent=50,
        OperatingSpeedMHz=2619,
        LifeTime={"CorrectableECCErrorCount": 5, "UncorrectableECCErrorCount": 0},
        Oem={"Nvidia": {"RowRemapping": {"CorrectableRowRemappingCount": 1, "UncorrectableRowRemappingCount": 2}}},
    )
    firmware = f"{V1}/UpdateService/FirmwareInventory/HGX_FW_{own}"
    member(
        tree,
        add(
            tree,
            firmware,
            "SoftwareInventory",
            Name="Software Inventory",
            Version="96.00.89.00.01",
            RelatedItem=[ref(chassis)],
            Updateable=True,
        ),
    )
    return values


def _entry(own: str, created: str, severity: str, message: str, **more: Any) -> dict[str, Any]:
    return {"Id": own, "Created": created, "Severity": severity, "Message": message, "EntryType": "Event", **more}


MAKES = {"dell": dell, "hpe": hpe, "supermicro": supermicro, "lenovo": lenovo, "ami": ami, "hgx": hgx}
