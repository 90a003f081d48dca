"""Frozen readings: what a driver returns and what an agent sends, errors included.

A device that does not answer is data (`ReadFailure`), not an exception. A missing value is None and
never zero. Units: percent 0-100, bytes, W, J, degrees C, MHz, seconds, bytes/s. These structs are
also the wire format of the agent, so every bound below is checked when a body is decoded.
"""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

Percent = Annotated[float, Meta(ge=0, le=100)]
Celsius = Annotated[float, Meta(ge=-60, le=250)]
Watts = Annotated[float, Meta(ge=0, le=100_000)]
Megahertz = Annotated[float, Meta(ge=0, le=100_000)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Rate = Annotated[float, Meta(ge=0, le=1e15)]
Small = Annotated[int, Meta(ge=0, le=32767)]
Pid = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Name = Annotated[str, Meta(max_length=200)]
Text = Annotated[str, Meta(max_length=2000)]


class FailureKind(StrEnum):
    """Why a read gave nothing. Stored and shown; each has a fix that docs/howto names."""

    TIMEOUT = "timeout"
    UNREACHABLE = "unreachable"
    AUTHENTICATION = "authentication"
    TLS = "tls"
    PROTOCOL = "protocol"
    NOT_SUPPORTED = "not_supported"
    PERMISSION = "permission"
    LOST = "lost"
    BUSY = "busy"
    MISSING_LIBRARY = "missing_library"
    IMPLAUSIBLE = "implausible"
    UNKNOWN = "unknown"


class ReadFailure(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that could not be read: `what` names it (a card, a URL, a sensor)."""

    what: Name
    kind: FailureKind
    detail: Text = ""


class CardValues(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One sample of a card or slice. Field names are the column names of the sample table.

    Counters (energy, ecc_*, pcie_replays, nvlink_errors, remapped_rows) only grow until the driver
    reloads or the card is reset; a fall is a reset, not a negative delta.
    """

    utilization: Percent | None = None
    sm_activity: Percent | None = None
    tensor_activity: Percent | None = None
    memory_activity: Percent | None = None
    memory_used: Count | None = None
    temperature: Celsius | None = None
    memory_temperature: Celsius | None = None
    power: Watts | None = None
    power_limit: Watts | None = None
    sm_clock: Megahertz | None = None
    memory_clock: Megahertz | None = None
    throttle_reasons: Count | None = None
    pcie_tx: Rate | None = None
    pcie_rx: Rate | None = None
    nvlink_tx: Rate | None = None
    nvlink_rx: Rate | None = None
    energy: Annotated[float, Meta(ge=0, le=1e15)] | None = None
    ecc_corrected: Count | None = None
    ecc_uncorrected: Count | None = None
    pcie_replays: Count | None = None
    nvlink_errors: Count | None = None
    remapped_rows: Count | None = None
    xid: Count | None = None


VALUE_FIELDS: tuple[str, ...] = CardValues.__struct_fields__


class SliceReading(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A MIG instance or AMD partition, measured against its own grant."""

    uuid: Name
    profile: Name
    kind: str = "mig"
    instance_id: str = ""
    memory_total: Count | None = None
    values: CardValues | None = None


class ProcessReading(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A process that holds a card, with what its cgroup says it belongs to."""

    pid: Pid
    card_uuid: Name
    slice_uuid: Name = ""
    memory_used: Count | None = None
    name: Name = ""
    user: Name = ""
    container_id: Name = ""
    pod_uid: Name = ""
    pod: Name = ""
    namespace: Name = ""
    slurm_job_id: Name = ""


class CardReading(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One card as a source sees it. At least one of uuid, serial, pci_address is known.

    `slot` is the physical place (SXM/OAM module number or BMC location); `minor` is N of
    /dev/nvidiaN; `index` is for display only and never identifies anything.
    """

    uuid: Name = ""
    serial: Name = ""
    pci_address: Name = ""
    vendor: Name = ""
    model_name: Name = ""
    pci_id: Name = ""
    part_number: Name = ""
    vbios: Name = ""
    firmware: Name = ""
    slot: Name = ""
    minor: Small | None = None
    index: Small | None = None
    memory_total: Count | None = None
    mig_enabled: bool | None = None
    partition_mode: Name = ""
    nvlink_active: Small | None = None
    pcie_generation: Small | None = None
    pcie_width: Small | None = None
    values: CardValues | None = None
    slices: tuple[SliceReading, ...] = ()
    failures: tuple[ReadFailure, ...] = ()
    present: bool = True


class NodeReading(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything an in-band source (agent, exporter) saw of one node at one moment.

    `complete` is False when a card was counted but could not be identified (lost, no permission):
    then a known card that is absent from `cards` is not taken for gone.
    """

    observed_at: datetime
    hostname: Name = ""
    machine_id: Name = ""
    system_serial: Name = ""
    boot_id: Name = ""
    driver_version: Name = ""
    runtime_version: Name = ""
    cards: tuple[CardReading, ...] = ()
    processes: tuple[ProcessReading, ...] = ()
    failures: tuple[ReadFailure, ...] = ()
    complete: bool = True
    simulated: bool = False


class SensorReading(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One sensor of a BMC. A threshold that is absent, null or -1 is None: no threshold."""

    name: Name
    kind: Name
    unit: Name
    value: float | None = None
    upper_caution: float | None = None
    upper_critical: float | None = None
    lower_caution: float | None = None
    lower_critical: float | None = None
    state: Name = ""


class FirmwareReading(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One firmware component: BIOS, BMC, VBIOS, NVSwitch, driver ..."""

    component: Name
    version: Name
    card_uuid: Name = ""
    card_serial: Name = ""
    updateable: bool | None = None


class LogEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of a SEL or Redfish log; `entry_id` is the BMC's own and may be reused after a clear."""

    entry_id: Name
    logged_at: datetime | None = None
    severity: Name = ""
    message: Text = ""
    sensor: Name = ""


class PowerState(StrEnum):
    """Chassis power as the BMC reports it."""

    ON = "on"
    OFF = "off"
    TURNING_ON = "turning_on"
    TURNING_OFF = "turning_off"
    UNKNOWN = "unknown"


class TlsPolicy(StrEnum):
    """How a BMC's certificate is checked; OFF only by the operator's choice."""

    FINGERPRINT = "fingerprint"
    AUTHORITY = "authority"
    OFF = "off"


class BmcTarget(Struct, frozen=True, kw_only=True):
    """Where and how to reach one BMC. The password is never logged: repr leaves it out."""

    address: str
    port: int
    protocol: str
    username: str
    password: str
    tls: TlsPolicy = TlsPolicy.OFF
    tls_fingerprint: str = ""
    tls_authority: str = ""

    def __repr__(self) -> str:
        return f"BmcTarget({self.protocol}://{self.username}@{self.address}:{self.port})"


class BmcReading(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything one visit to a BMC gave, and what it cost.

    `reached` is False when nothing at all could be read: then only `failures` counts.
    `cards_known` is False when this BMC can't enumerate accelerators (plain IPMI, or the visit did
    not look): an empty `cards` then says nothing. `requests` and `elapsed` (s) are what was spent.
    """

    observed_at: datetime
    reached: bool
    vendor: Name = ""
    bmc_model: Name = ""
    bmc_firmware: Name = ""
    bmc_uuid: Name = ""
    manufacturer: Name = ""
    system_model: Name = ""
    system_serial: Name = ""
    system_uuid: Name = ""
    hostname: Name = ""
    bios_version: Name = ""
    power_state: PowerState = PowerState.UNKNOWN
    power: Watts | None = None
    inlet_temperature: Celsius | None = None
    cards: tuple[CardReading, ...] = ()
    cards_known: bool = False
    sensors: tuple[SensorReading, ...] = ()
    firmware: tuple[FirmwareReading, ...] = ()
    failures: tuple[ReadFailure, ...] = ()
    requests: int = 0
    peak_concurrency: int = 0
    elapsed: float = 0.0
    tls_fingerprint: Name = ""
    simulated: bool = False
