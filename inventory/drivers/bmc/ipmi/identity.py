"""Who a BMC and its node are: FRU 0, GUIDs, the controller's name, the manufacturer's number.

pyghmi reads a FRU in pieces of 224 bytes and backs off on two completion codes only; here any code that
means "too long" halves the piece, and only the areas that are used are read, not a multi-kilobyte
inventory. FRU layout: Platform Management FRU Information Storage Definition 1.3.
"""

from dataclasses import dataclass

from pyghmi.ipmi.fru import FRU

from inventory.drivers.bmc.ipmi.errors import TOO_LONG, BadAnswer, CommandRefused
from inventory.drivers.bmc.ipmi.session import Session

_STORAGE, _APPLICATION, _GROUP = 0x0A, 0x06, 0x2C
_DCMI = 0xDC
_LONGEST_READ, _SMALLEST_READ = 128, 8
_NAME_PIECE = 16  # bytes that DCMI lets one read of the name have
_LONGEST_NAME = 64

# IANA private enterprise numbers of BMC makers (47488 is what Supermicro's newer boards answer).
VENDORS = {
    2: "IBM",
    11: "HPE",
    343: "Intel",
    674: "Dell",
    2011: "Huawei",
    2623: "ASUS",
    5703: "NVIDIA",
    5771: "Cisco",
    6653: "Tyan",
    7244: "Quanta",
    10368: "Fujitsu",
    10876: "Supermicro",
    15370: "Gigabyte",
    19046: "Lenovo",
    20301: "Lenovo",
    20974: "AMI",
    25506: "H3C",
    37945: "Inspur",
    40092: "Wiwynn",
    47196: "HPE",
    47488: "Supermicro",
    49769: "YADRO",
}
SIMULATED = "simulated"  # asset tag of the simulated fleet's FRU


@dataclass(frozen=True, slots=True)
class Product:
    """What FRU 0 says, empty where it says nothing."""

    manufacturer: str = ""
    model: str = ""
    serial: str = ""
    asset: str = ""


async def read_product(session: Session) -> Product:
    """Read and decode FRU 0. Raises CommandRefused, BadAnswer when it is damaged."""
    size = int.from_bytes((await session.command(_STORAGE, 0x10, b"\x00"))[:2], "little")
    reader = _FruReader(session)
    header = await reader.read(0, min(8, size))
    if len(header) < 8 or header[0] & 0x0F != 1 or sum(header) & 0xFF:
        raise BadAnswer("FRU 0 has no valid header")
    image = bytearray(size)
    image[:8] = header
    image[5] = 0  # the multi-record area is not read
    for place in header[2:5]:
        start = place * 8
        if not place or start + 2 > size:
            continue
        length = (await reader.read(start, 2))[1] * 8
        area = await reader.read(start, min(length, size - start))
        image[start : start + len(area)] = area
    return product_of(bytes(image))


def product_of(image: bytes) -> Product:
    """Decode a FRU image: the product area, else the board's, else the chassis serial. Raises BadAnswer."""
    try:
        fields = FRU(rawdata=bytearray(image)).info or {}
    except Exception as error:  # pyghmi raises whatever a damaged image leads to
        raise BadAnswer(f"FRU 0 can't be decoded: {error!r}") from error
    return Product(
        manufacturer=_first(fields, "Manufacturer", "Board manufacturer"),
        model=_first(fields, "Product name", "Board product name", "Model"),
        serial=_first(fields, "Serial Number", "Chassis serial number", "Board serial number"),
        asset=_first(fields, "Asset Number"),
    )


def _first(fields: dict[str, object], *names: str) -> str:
    for name in names:
        value = fields.get(name)
        text = value.hex() if isinstance(value, bytes | bytearray) else str(value or "")
        if text.strip():
            return text.strip()[:200]
    return ""


class _FruReader:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._piece = _LONGEST_READ

    async def read(self, start: int, count: int) -> bytes:
        """Read `count` bytes, fewer where the BMC has no more."""
        data = b""
        while len(data) < count:
            offset, piece = start + len(data), min(self._piece, count - len(data))
            try:
                body = await self._session.command(_STORAGE, 0x11, bytes((0, offset & 0xFF, offset >> 8, piece)))
            except CommandRefused as refused:
                if refused.code not in TOO_LONG or piece <= _SMALLEST_READ:
                    raise
                self._piece = max(_SMALLEST_READ, piece // 2)
                continue
            part = body[1 : 1 + body[0]] if body else b""
            if not part:
                break
            data += part
        return data


async def read_guid(session: Session, *, system: bool) -> str:
    """The node's (`system`) or the BMC's UUID, empty where unset. Raises CommandRefused."""
    return guid_text(await session.command(_APPLICATION, 0x37 if system else 0x08))


def guid_text(body: bytes) -> str:
    """A GUID as SMBIOS prints it: the first three fields are little-endian. Empty for all 00h or FFh."""
    if len(body) < 16 or len(set(body[:16])) == 1:
        return ""
    fields = (body[3::-1], body[5:3:-1], body[7:5:-1], body[8:10], body[10:16])
    return "-".join(field.hex() for field in fields)


async def read_name(session: Session) -> str:
    """DCMI's Management Controller Identifier String (DCMI 1.5 section 6.4.6.1). Raises CommandRefused."""
    text = b""
    total = 1
    while len(text) < min(total, _LONGEST_NAME):
        count = _NAME_PIECE if not text else min(_NAME_PIECE, total - len(text))
        body = await session.command(_GROUP, 0x09, bytes((_DCMI, len(text), count)))
        if len(body) < 3:
            break
        total = body[1]
        text += body[2 : 2 + count]
    return text[:total].split(b"\x00")[0].decode("utf-8", "replace").strip()
