"""One visit to a BMC: its steps, what each adds to the reading, and what becomes of a refusal."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from msgspec.structs import replace

from inventory.drivers.bmc.ipmi.errors import ABSENT, NOT_NOW, BadAnswer, CommandRefused, IpmiError
from inventory.drivers.bmc.ipmi.identity import SIMULATED, VENDORS, read_guid, read_name, read_product
from inventory.drivers.bmc.ipmi.memory import RECORDS, Records, RecordsKey, Remembered
from inventory.drivers.bmc.ipmi.records import BMC_ADDRESS, SensorRecord
from inventory.drivers.bmc.ipmi.repository import DeviceId, Source, read_records, stamp
from inventory.drivers.bmc.ipmi.sensors import (
    dcmi_power,
    inlet_temperature,
    node_power,
    plausible_power,
    raw_limits,
    reading_of,
    unavailable,
)
from inventory.drivers.bmc.ipmi.session import Session
from inventory.observations import (
    BmcReading,
    BmcTarget,
    FailureKind,
    FirmwareReading,
    PowerState,
    ReadFailure,
    SensorReading,
)

Found = TypeVar("Found")
_CHASSIS, _SENSOR, _GROUP = 0x00, 0x04, 0x2C
_DEFAULT_NAME = "DCMI"  # the prefix of the name that DCMI prescribes until somebody sets one
# What a poll reads; voltages, chassis switches and the like are read by discovery only.
POLLED = frozenset({"temperature", "fan", "power", "energy", "power_supply", "power_unit"})


@dataclass(slots=True)
class Visit:
    """Collects; `reading()` gives what was collected so far, also after a deadline cut the visit short."""

    target: BmcTarget
    memory: Remembered
    observed_at: datetime
    step: str = "login"
    reached: bool = False
    firmware: str = ""
    vendor: str = ""
    power_state: PowerState = PowerState.UNKNOWN
    power: float | None = None
    pairs: list[tuple[SensorRecord, SensorReading]] = field(default_factory=list)
    failures: list[ReadFailure] = field(default_factory=list)

    async def discover(self, session: Session, device: DeviceId) -> None:
        """Everything: identity, power, thresholds, all sensors."""
        self._introduce(device)
        await self._attempt("chassis status", self._power_state, session)
        await self._attempt("identity", self._identity, session)
        await self._attempt("sensor records", self._all_sensors, session, device, None)
        await self._attempt("power reading", self._node_power, session)

    async def poll(self, session: Session, device: DeviceId) -> None:
        """What changes."""
        self._introduce(device)
        await self._attempt("chassis status", self._power_state, session)
        await self._attempt("sensor records", self._all_sensors, session, device, POLLED)
        await self._attempt("power reading", self._node_power, session)

    def reading(self, *, requests: int, elapsed: float) -> BmcReading:
        """The collected facts as a frozen reading."""
        readings = tuple(reading for _, reading in self.pairs)
        identity = self.memory.identity if self.reached else {}
        bmc_firmware = (FirmwareReading(component="BMC", version=self.firmware),) if self.firmware else ()
        reading = BmcReading(
            observed_at=self.observed_at, reached=self.reached, vendor=self.vendor, bmc_firmware=self.firmware,
            power_state=self.power_state, power=self.power if self.power is not None else node_power(readings),
            inlet_temperature=inlet_temperature(self.pairs), sensors=readings, firmware=bmc_firmware,
            failures=tuple(self.failures), requests=requests, peak_concurrency=1 if requests else 0,
            elapsed=elapsed, simulated=self.reached and self.memory.simulated, cards_known=False,
        )  # fmt: skip
        return replace(reading, **identity)

    async def _attempt(self, step: str, work: Callable[..., Awaitable[None]], *arguments: object) -> None:
        """Run one step; a refusal or a bad answer is noted and the visit goes on. Silence ends it."""
        self.step = step
        try:
            await work(*arguments)
        except (CommandRefused, BadAnswer) as error:
            self.failures.append(error.failure(self.step))
        except IpmiError as error:
            if error.kind is not FailureKind.NOT_SUPPORTED:
                raise
            self.failures.append(error.failure(self.step))

    def _introduce(self, device: DeviceId) -> None:
        self.firmware = device.firmware
        self.vendor = VENDORS.get(device.manufacturer, "")

    async def _power_state(self, session: Session) -> None:
        self.power_state = await read_power_state(session)

    async def _identity(self, session: Session) -> None:
        """Optional commands: a BMC that does not know one is not at fault."""
        product = await self._optional("FRU", read_product(session))
        found = {
            "system_uuid": await self._optional("system GUID", read_guid(session, system=True)) or "",
            "bmc_uuid": await self._optional("device GUID", read_guid(session, system=False)) or "",
        }
        name = await self._optional("controller name", read_name(session)) or ""
        found["hostname"] = "" if name.startswith(_DEFAULT_NAME) else name[:200]
        if product is not None:
            found |= {
                "manufacturer": product.manufacturer,
                "system_model": product.model,
                "system_serial": product.serial,
            }
            self.memory.simulated = product.asset == SIMULATED
        self.memory.identity = self.memory.identity | found

    async def _optional(self, step: str, work: Awaitable[Found]) -> Found | None:
        self.step = step
        try:
            return await work
        except (CommandRefused, BadAnswer) as error:
            if error.kind is not FailureKind.NOT_SUPPORTED:
                self.failures.append(error.failure(step))
            return None

    async def _all_sensors(self, session: Session, device: DeviceId, kinds: Collection[str] | None) -> None:
        records = await self.records(session, device)
        self.failures += [
            ReadFailure(what="sensor record", kind=FailureKind.PROTOCOL, detail=text) for text in records.damaged
        ]
        foreign = [record for record in records.sensors if record.owner != BMC_ADDRESS]
        if foreign and kinds is None:
            owners = ", ".join(sorted({f"{record.owner:02X}h" for record in foreign}))
            detail = f"{len(foreign)} sensors belong to other controllers ({owners}), which are not asked"
            self.failures.append(
                ReadFailure(what="sensors of other controllers", kind=FailureKind.NOT_SUPPORTED, detail=detail)
            )
        for record in records.sensors:
            if record.owner == BMC_ADDRESS and (kinds is None or record.kind in kinds):
                self.step = record.name
                await self._sensor(session, record, thresholds=kinds is None)

    async def records(self, session: Session, device: DeviceId) -> Records:
        """The sensor records of this kind of BMC, out of the cache where they were read before."""
        count, added, erased = await stamp(session, Source.of(device))
        key = RecordsKey(
            device.manufacturer, device.product, device.device, device.firmware, device.auxiliary, count, added,
            erased, RecordsKey.owner(added, erased, self.target),
        )  # fmt: skip
        records = RECORDS.get(key)
        if records is None:
            raw = await read_records(session, device)
            records = Records.decode(raw, manufacturer=device.manufacturer, product=device.product)
            RECORDS.put(key, records)
        return records

    async def _sensor(self, session: Session, record: SensorRecord, *, thresholds: bool) -> None:
        """One sensor. pyghmi stops at the first refusal and loses the rest; here each stands alone."""
        place = (record.lun, record.number)
        try:
            body = await session.command(_SENSOR, 0x2D, bytes((record.number,)), lun=record.lun)
            if thresholds and record.readable_limits:
                self.memory.limits[place] = await self._limits(session, record)
            if record.needs_factors and body:
                factors = await session.command(_SENSOR, 0x23, bytes((record.number, body[0])), lun=record.lun)
                record = record.with_factors(factors)
            self.pairs.append((record, reading_of(record, body, self.memory.limits.get(place))))
        except CommandRefused as refused:
            if refused.code == NOT_NOW:
                self.pairs.append((record, unavailable(record)))
            elif refused.code != ABSENT:
                self.failures.append(refused.failure(record.name))
        except BadAnswer as error:
            self.failures.append(error.failure(record.name))

    async def _limits(self, session: Session, record: SensorRecord) -> dict[str, int]:
        """Thresholds as set on this BMC; those of the record where it does not tell."""
        try:
            return raw_limits(await session.command(_SENSOR, 0x27, bytes((record.number,)), lun=record.lun))
        except (CommandRefused, BadAnswer):
            return record.limits

    async def _node_power(self, session: Session) -> None:
        if not self.memory.dcmi_power:
            return
        try:
            watts = dcmi_power(await session.command(_GROUP, 0x02, b"\xdc\x01\x00\x00"))
        except CommandRefused as refused:
            if refused.kind is not FailureKind.NOT_SUPPORTED or refused.code == NOT_NOW:
                raise
            self.memory.dcmi_power = False
        else:
            self.power = None if watts is None else plausible_power(watts)


async def read_power_state(session: Session) -> PowerState:
    """Chassis power by Get Chassis Status (specification 28.2). Raises IpmiError."""
    body = await session.command(_CHASSIS, 0x01)
    if not body:
        raise BadAnswer("chassis status is empty")
    return PowerState.ON if body[0] & 0x01 else PowerState.OFF
