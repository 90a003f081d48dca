"""What is kept between visits: sensor records per kind of BMC, and a few facts about each single one.

Both live in the process and are bounded, so drivers may be made anew for every visit. Losing them costs
requests, never correctness.
"""

import base64
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from inventory.drivers.bmc.ipmi.engine import SHA256
from inventory.drivers.bmc.ipmi.errors import BadAnswer
from inventory.drivers.bmc.ipmi.records import SensorRecord, sensors_of, unique_names
from inventory.observations import BmcTarget

_MOST_KINDS = 256
_MOST_BMCS = 20_000
_NO_TIME = frozenset({0, 0xFFFFFFFF})


@dataclass(frozen=True, slots=True)
class RecordsKey:
    """What must be equal for two BMCs to share records: model, firmware, and the records' own stamp.

    `address` is empty except where the BMC keeps no time: then nothing tells two sets of records of
    the same length apart, and each BMC has its own.
    """

    manufacturer: int
    product: int
    device: int
    firmware: str
    auxiliary: str
    count: int
    added: int
    erased: int
    address: str = ""

    @staticmethod
    def owner(added: int, erased: int, target: BmcTarget) -> str:
        """The `address` part: the BMC's own where neither time says anything."""
        return f"{target.address}:{target.port}" if {added, erased} <= _NO_TIME else ""


@dataclass(frozen=True, slots=True)
class Records:
    """The decoded records of one kind of BMC. `damaged` says which could not be decoded."""

    raw: tuple[bytes, ...]
    sensors: tuple[SensorRecord, ...]
    damaged: tuple[str, ...] = ()

    @classmethod
    def decode(cls, raw: Iterable[bytes], *, manufacturer: int, product: int) -> "Records":
        """Decode each on its own: one bad record hides no other."""
        kept, sensors, damaged = tuple(raw), list[SensorRecord](), list[str]()
        for record in kept:
            try:
                sensors += sensors_of(record, manufacturer=manufacturer, product=product)
            except BadAnswer as error:
                damaged.append(str(error))
        return cls(kept, tuple(unique_names(sensors)), tuple(damaged))


class RecordsCache:
    """Least-recently-used records, with export and import as JSON-able data to survive a restart."""

    def __init__(self, most: int = _MOST_KINDS) -> None:
        self._kept: OrderedDict[RecordsKey, Records] = OrderedDict()
        self._lock = threading.Lock()
        self._most = most

    def get(self, key: RecordsKey) -> Records | None:
        """The records of this kind, if they were read before."""
        with self._lock:
            records = self._kept.get(key)
            if records is not None:
                self._kept.move_to_end(key)
            return records

    def put(self, key: RecordsKey, records: Records) -> None:
        """Keep records, dropping the least recently used beyond the limit."""
        with self._lock:
            self._kept[key] = records
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()

    def export(self) -> list[dict[str, object]]:
        """JSON-able content, least recently used first."""
        with self._lock:
            return [
                {
                    **{name: getattr(key, name) for name in RecordsKey.__slots__},
                    "records": [base64.b64encode(raw).decode("ascii") for raw in records.raw],
                }
                for key, records in self._kept.items()
            ]

    def load(self, exported: Iterable[Mapping[str, object]]) -> int:
        """Add what `export` gave; returns how many kinds. Raises ValueError or KeyError for other data."""
        loaded = 0
        for item in exported:
            raw = item["records"]
            if not isinstance(raw, list):
                raise ValueError("records must be a list of base64 texts")
            key = RecordsKey(**{name: item[name] for name in RecordsKey.__slots__})  # type: ignore[arg-type]
            decoded = Records.decode(
                (base64.b64decode(text, validate=True) for text in raw),
                manufacturer=key.manufacturer,
                product=key.product,
            )
            self.put(key, decoded)
            loaded += 1
        return loaded


@dataclass(slots=True)
class Remembered:
    """Facts about one BMC that save requests. `clock_offset` is our time minus the BMC's, in seconds."""

    digest: int = SHA256
    dcmi_power: bool = True
    identity: dict[str, str] = field(default_factory=dict)
    simulated: bool = False
    limits: dict[tuple[int, int], dict[str, int]] = field(default_factory=dict)
    log_mark: tuple[int, bytes] | None = None
    clock_offset: float | None = None
    device: bytes = b""

    def forget(self, device: bytes) -> None:
        """Start over for another device at this address (`device`: its answer to Get Device ID)."""
        self.device, self.identity, self.simulated = device, {}, False
        self.limits, self.log_mark, self.clock_offset, self.dcmi_power = {}, None, None, True


class BmcMemory:
    """`Remembered` by address and port, bounded."""

    def __init__(self, most: int = _MOST_BMCS) -> None:
        self._kept: OrderedDict[tuple[str, int], Remembered] = OrderedDict()
        self._lock = threading.Lock()
        self._most = most

    def of(self, target: BmcTarget) -> Remembered:
        """What is remembered of this BMC; starts empty."""
        with self._lock:
            key = (target.address, target.port)
            kept = self._kept.setdefault(key, Remembered())
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
            return kept

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._kept.clear()


RECORDS = RecordsCache()
MEMORY = BmcMemory()
