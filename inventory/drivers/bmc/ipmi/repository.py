"""Reads a BMC's sensor data records, from the main repository or the device's own.

Bounded against the field's faults: reservations that others take again and again, records that point
at themselves, answers shorter than asked. Layouts: IPMI 2.0 specification chapters 33 and 35.
"""

import struct
from dataclasses import dataclass

from inventory.drivers.bmc.ipmi.errors import (
    RESERVATION_LOST,
    TOO_LONG,
    BadAnswer,
    CommandRefused,
    IpmiError,
)
from inventory.drivers.bmc.ipmi.session import Session
from inventory.observations import FailureKind

_STORAGE, _SENSOR = 0x0A, 0x04
_HEADER = 5
_LONGEST_READ = 0xFF  # "the whole record"
_SMALLEST_READ = 8
_RESERVATIONS = 8
_MOST_RECORDS = 4096


@dataclass(frozen=True, slots=True)
class DeviceId:
    """Answer to Get Device ID (specification 20.1)."""

    device: int
    provides_device_sdrs: bool
    firmware: str
    manufacturer: int
    product: int
    has_repository: bool
    has_sensors: bool
    auxiliary: str

    @classmethod
    def read(cls, body: bytes) -> "DeviceId":
        """Decode; raises BadAnswer when it is too short."""
        if len(body) < 11:
            raise BadAnswer(f"device id of {len(body)} bytes")
        return cls(
            device=body[0],
            provides_device_sdrs=bool(body[1] & 0x80),
            firmware=f"{body[2] & 0x7F}.{body[3]:02x}",
            manufacturer=int.from_bytes(body[6:9], "little") & 0xFFFFF,
            product=int.from_bytes(body[9:11], "little"),
            has_repository=bool(body[5] & 0x02),
            has_sensors=bool(body[5] & 0x01),
            auxiliary=body[11:15].hex(),
        )


@dataclass(frozen=True, slots=True)
class Source:
    """Where the records are: the three commands of the main repository or of the device's own."""

    netfn: int
    info: int
    reserve: int
    get: int

    @classmethod
    def of(cls, device: DeviceId) -> "Source":
        """A controller without a main repository lists its sensors itself; pyghmi gives up on those."""
        if device.provides_device_sdrs and not device.has_repository:
            return cls(_SENSOR, 0x20, 0x22, 0x21)
        return cls(_STORAGE, 0x20, 0x22, 0x23)


async def stamp(session: Session, source: Source) -> tuple[int, int, int]:
    """(record count, last addition, last deletion): changes whenever the records do.

    The device's own records have one change counter, given as the addition. 0 and FFFFFFFFh mean
    that the BMC keeps no time.
    """
    body = await session.command(source.netfn, source.info)
    if source.netfn == _SENSOR:
        changed = int.from_bytes(body[2:6], "little") if len(body) >= 6 and body[1] & 0x80 else 0
        return (body[0] if body else 0), changed, 0
    if len(body) < 13 or body[0] & 0x0F != 0x01:
        raise BadAnswer("the repository's version is not 51h")
    count, _free, added, erased = struct.unpack_from("<HHII", body, 1)
    return count, added, erased


class RecordReader:
    """Reads every record in order. `chunk` is what this BMC can answer at once; keep it for the next one."""

    def __init__(self, session: Session, source: Source) -> None:
        self._session, self._source = session, source
        self._reservation = 0
        self._reserved = 0
        self.chunk = _LONGEST_READ

    async def read_all(self) -> list[bytes]:
        """All records, raw. Raises IpmiError when the BMC does not let us finish."""
        records: list[bytes] = []
        identifier, seen = 0, set[int]()
        while identifier != 0xFFFF and identifier not in seen and len(records) < _MOST_RECORDS:
            seen.add(identifier)
            identifier, record = await self._read(identifier)
            records.append(record)
        return records

    async def _read(self, identifier: int) -> tuple[int, bytes]:
        while True:
            try:
                return await self._read_once(identifier)
            except CommandRefused as refused:
                if refused.code in TOO_LONG and self.chunk > _SMALLEST_READ:
                    self.chunk = 64 if self.chunk == _LONGEST_READ else max(_SMALLEST_READ, self.chunk // 2)
                elif refused.code == RESERVATION_LOST and self._reserved < _RESERVATIONS:
                    self._reservation = 0
                else:
                    raise

    async def _read_once(self, identifier: int) -> tuple[int, bytes]:
        if self.chunk == _LONGEST_READ:
            following, record = await self._part(identifier, 0, _LONGEST_READ)
            if len(record) >= _HEADER and len(record) >= record[4] + _HEADER:
                return following, record
            self.chunk = 64  # cut short without saying so
        following, record = await self._part(identifier, 0, _HEADER)
        if len(record) < _HEADER:
            raise BadAnswer(f"record {identifier:04X}h has no header")
        length = record[4] + _HEADER
        while len(record) < length:
            _, part = await self._part(identifier, len(record), min(self.chunk, length - len(record)))
            if not part:
                raise BadAnswer(f"record {identifier:04X}h ends early")
            record += part
        return following, record

    async def _part(self, identifier: int, offset: int, count: int) -> tuple[int, bytes]:
        if count != _LONGEST_READ and not self._reservation:
            self._reserved += 1
            body = await self._session.command(self._source.netfn, self._source.reserve)
            self._reservation = int.from_bytes(body[:2], "little")
        request = struct.pack("<HHBB", self._reservation, identifier, offset, count)
        body = await self._session.command(self._source.netfn, self._source.get, request)
        if len(body) < 2:
            raise BadAnswer(f"record {identifier:04X}h: empty answer")
        return int.from_bytes(body[:2], "little"), body[2:]


async def read_records(session: Session, device: DeviceId) -> list[bytes]:
    """All sensor data records of a BMC. Raises IpmiError (BUSY when others keep taking the reservation)."""
    if not device.has_repository and not device.provides_device_sdrs:
        raise IpmiError(FailureKind.NOT_SUPPORTED, "the BMC has no sensor data records")
    return await RecordReader(session, Source.of(device)).read_all()
