"""Who a card or node is: clean identifiers, and whether two descriptions can be the same thing.

Order of trust for cards: UUID, then serial, then PCI address on the same node; never an index.
In-band and out-of-band name things differently (TELEMETRY: a BMC gives the UUID without its prefix
and the module serial with or without leading zeros), so comparisons use keys, not the shown text.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

_BARE_UUID = re.compile(r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
_UUID_PREFIX = re.compile(r"^(gpu|mig)-", re.IGNORECASE)
_PCI = re.compile(
    r"^(?:(?P<domain>[0-9a-f]{1,8}):)?(?P<bus>[0-9a-f]{1,2}):(?P<device>[0-9a-f]{1,2})(?:\.(?P<function>[0-7]))?$"
)
# What firmware and tools write when they know nothing (SMBIOS defaults, tool placeholders).
_PLACEHOLDERS = frozenset({
    "", "-", "n/a", "na", "[n/a]", "none", "null", "(null)", "nil", "unknown", "[unknown error]", "not specified",
    "not available", "not applicable", "not present", "not supported", "[not supported]", "not set", "unspecified",
    "undefined", "empty", "invalid", "default", "default string", "to be filled by o.e.m.", "to be filled by oem",
    "to be set by o.e.m.", "o.e.m.", "oem", "system serial number", "serial number", "chassis serial number",
    "base board serial number", "123456789", "0123456789", "1234567890", "<<<null>>>", "error",
})  # fmt: skip
# A UUID that an AMI default image gives to every board.
_DEFAULT_UUIDS = frozenset({"03000200-0400-0500-0006-000700080009"})


def _same_sign(text: str) -> bool:
    """Whether a text is padding only: zeros, X, F, dots or dashes."""
    signs = set(text.lower()) - set(" -.:_")
    return not signs or signs in ({"0"}, {"x"}, {"f"}, {"?"}, {"*"}, {"#"})


def known_text(text: str | None) -> str:
    """The text without padding, or "" when it only says that nothing is known."""
    cleaned = (text or "").replace("\x00", " ").strip()
    if cleaned.lower() in _PLACEHOLDERS or _same_sign(cleaned):
        return ""
    return cleaned


def card_uuid(text: str | None, vendor: str = "") -> str:
    """The UUID as it is stored: lower-case hex, NVIDIA's with its `GPU-` prefix, a slice's with `MIG-`.

    A bare UUID of an NVIDIA card (as BMCs give it) gets the prefix that the driver would show.
    """
    cleaned = known_text(text)
    prefix = _UUID_PREFIX.match(cleaned)
    body = (cleaned[prefix.end() :] if prefix else cleaned).lower()
    if not body or _same_sign(body) or body in _DEFAULT_UUIDS:
        return ""
    if prefix:
        return f"{prefix.group(1).upper()}-{body.replace('gpu-', 'GPU-', 1)}"
    if vendor.strip().lower().startswith("nvidia") and _BARE_UUID.match(body):
        return f"GPU-{body}"
    return body


def uuid_key(text: str) -> str:
    """What two spellings of one card's UUID have in common: the hex, without prefix."""
    return text.lower().removeprefix("gpu-")


def uuid_spellings(text: str) -> tuple[str, ...]:
    """The stored forms that a UUID may have: with and without prefix."""
    key = uuid_key(text)
    return (f"GPU-{key}", key) if key else ()


def card_serial(text: str | None) -> str:
    """The serial as it is stored, or "" when it identifies nothing."""
    return known_text(text)[:64]


def serial_key(text: str) -> str:
    """What two spellings of a serial have in common: case and leading zeros do not count."""
    return text.upper().lstrip("0")


def serial_spellings(text: str) -> tuple[str, ...]:
    """Stored forms to look for: as given, and without leading zeros."""
    return tuple(dict.fromkeys(form for form in (text, text.upper(), text.lstrip("0"), serial_key(text)) if form))


def pci_address(text: str | None) -> str:
    """`dddd:bb:dd.f` in lower case; NVML's 8-digit domain is cut to four where that loses nothing."""
    match = _PCI.match(known_text(text).lower())
    if match is None:
        return ""
    domain = (match["domain"] or "0").lstrip("0").rjust(4, "0")
    return f"{domain}:{match['bus'].zfill(2)}:{match['device'].zfill(2)}.{match['function'] or '0'}"


def slot_name(text: str | None) -> str:
    """A slot's name, or "" when it says nothing. `0` is a slot."""
    cleaned = (text or "").strip()[:64]
    return "" if cleaned.lower() in _PLACEHOLDERS else cleaned


@dataclass(frozen=True, slots=True)
class CardIdentity:
    """What identifies a card, already cleaned (see `card_identity`)."""

    uuid: str = ""
    serial: str = ""
    pci_address: str = ""
    slot: str = ""

    def contradicts(self, other: "CardIdentity") -> bool:
        """Whether both can't be one card: each has a UUID and they differ, else the same of serials."""
        if self.uuid and other.uuid:
            return uuid_key(self.uuid) != uuid_key(other.uuid)
        return bool(self.serial and other.serial) and serial_key(self.serial) != serial_key(other.serial)

    def says_nothing(self) -> bool:
        """Whether not even a place is known."""
        return not (self.uuid or self.serial or self.pci_address or self.slot)


def card_identity(*, uuid: str, serial: str, pci: str, slot: str, vendor: str) -> CardIdentity:
    """A cleaned identity from what a source reported."""
    return CardIdentity(card_uuid(uuid, vendor), card_serial(serial), pci_address(pci), slot_name(slot))


def shared_serials(serials: Iterable[str]) -> frozenset[str]:
    """Serial keys that stand on several cards of one reading: a board's serial, no card's identity."""
    counted = Counter(serial_key(serial) for serial in serials if serial)
    return frozenset(key for key, number in counted.items() if number > 1)


# -- nodes ------------------------------------------------------------------------------------------------------------


def system_uuid(text: str | None) -> str:
    """A system's UUID in lower case with dashes, or "" for firmware defaults."""
    body = known_text(text).lower().strip("{}").replace("-", "")
    if len(body) != 32 or not all(sign in "0123456789abcdef" for sign in body) or _same_sign(body):
        return ""
    dashed = f"{body[:8]}-{body[8:12]}-{body[12:16]}-{body[16:20]}-{body[20:]}"
    return "" if dashed in _DEFAULT_UUIDS else dashed


def _swapped(uuid: str) -> str:
    parts = uuid.split("-")
    flipped = [bytes.fromhex(part)[::-1].hex() for part in parts[:3]]
    return "-".join([*flipped, *parts[3:]])


def system_uuid_spellings(uuid: str) -> tuple[str, ...]:
    """The UUID and its other byte order: SMBIOS before 2.6 and some BMCs swap the first three fields."""
    return (uuid, _swapped(uuid)) if uuid else ()


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """What identifies a server, already cleaned (see `node_identity`)."""

    machine_id: str = ""
    serial: str = ""
    uuid: str = ""

    def contradicts(self, other: "NodeIdentity") -> bool:
        """Whether both can't be one server.

        Serials decide before UUIDs, and either before the machine id, which is copied when a disk
        image is cloned.
        """
        if self.serial and other.serial:
            if self.serial.upper() != other.serial.upper():
                return True
            return self._shares_chassis_serial(other)
        if self.uuid and other.uuid:
            return other.uuid not in system_uuid_spellings(self.uuid)
        # A machine that is known by DMI stays itself when its disk is replaced.
        known = self.serial or self.uuid or other.serial or other.uuid
        return not known and bool(self.machine_id and other.machine_id) and self.machine_id != other.machine_id

    def _shares_chassis_serial(self, other: "NodeIdentity") -> bool:
        """Whether two servers only share the serial of their chassis (twins, blades): their UUIDs differ.

        Between operating system and BMC a differing UUID alone says nothing, because some BMCs make
        up their own; so it counts between two BMCs, or when the machine ids differ too.
        """
        if not (self.uuid and other.uuid) or other.uuid in system_uuid_spellings(self.uuid):
            return False
        if self.machine_id and other.machine_id:
            return self.machine_id != other.machine_id
        return not self.machine_id and not other.machine_id

    def agrees(self, other: "NodeIdentity") -> bool:
        """Whether both are one server: something in common and nothing against it."""
        common = (
            (self.serial and self.serial.upper() == other.serial.upper())
            or (self.uuid and other.uuid in system_uuid_spellings(self.uuid))
            or (self.machine_id and self.machine_id == other.machine_id)
        )
        return bool(common) and not self.contradicts(other)


def node_identity(*, machine_id: str, serial: str, uuid: str) -> NodeIdentity:
    """A cleaned identity from what an agent or BMC reported."""
    return NodeIdentity(known_text(machine_id).lower()[:64], known_text(serial)[:100], system_uuid(uuid))
