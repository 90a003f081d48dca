"""Cleaning and comparing identifiers (I5)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.rules import identity
from inventory.rules.identity import CardIdentity

HEX = "0a1b2c3d-1111-2222-3333-444455556666"


@pytest.mark.parametrize(
    ("said", "vendor", "stored"),
    [
        (f"GPU-{HEX}", "", f"GPU-{HEX}"),
        (f"gpu-{HEX.upper()}", "", f"GPU-{HEX}"),
        (HEX.upper(), "NVIDIA", f"GPU-{HEX}"),
        (HEX, "NVIDIA Corporation", f"GPU-{HEX}"),
        (HEX, "AMD", HEX),
        (HEX, "", HEX),
        (f"MIG-{HEX}", "", f"MIG-{HEX}"),
        (f"MIG-GPU-{HEX}/7/0", "", f"MIG-GPU-{HEX}/7/0"),
        (f"  GPU-{HEX}\x00 ", "", f"GPU-{HEX}"),
        ("00000000-0000-0000-0000-000000000000", "nvidia", ""),
        ("GPU-00000000-0000-0000-0000-000000000000", "", ""),
        ("N/A", "nvidia", ""),
        ("[Unknown Error]", "", ""),
        ("", "", ""),
    ],
)  # fmt: skip
def test_uuid_is_stored_as_the_driver_writes_it(said: str, vendor: str, stored: str) -> None:
    """I5: a BMC's spelling and the driver's are one UUID."""
    assert identity.card_uuid(said, vendor) == stored


@pytest.mark.parametrize(
    "said",
    ["", "   ", "N/A", "[N/A]", "0", "0000000000000", "Unknown", "unknown ", "None", "null", "\x00\x00", "XXXXXXXX",
     "-", "...", "To Be Filled By O.E.M.", "Not Specified", "FFFFFFFF", "0123456789", "[Not Supported]"],
)  # fmt: skip
def test_serials_that_identify_nothing(said: str) -> None:
    """I5: padding and placeholders are no serial."""
    assert identity.card_serial(said) == ""


def test_serials_compare_without_case_and_leading_zeros() -> None:
    assert identity.serial_key("01652ab") == identity.serial_key("1652AB")
    assert "1652ab" in identity.serial_spellings("01652ab")


@pytest.mark.parametrize(
    ("said", "stored"),
    [
        ("00000000:18:00.0", "0000:18:00.0"),
        ("0000:18:00.0", "0000:18:00.0"),
        ("00000000:AF:00.0", "0000:af:00.0"),
        ("18:00.0", "0000:18:00.0"),
        ("0000:18:00", "0000:18:00.0"),
        ("00010000:01:00.0", "10000:01:00.0"),
        ("0002:00:00.1", "0002:00:00.1"),
        ("PCI", ""),
        ("0000:18:00.9", ""),
        ("N/A", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_pci_addresses_in_one_form(said: str, stored: str) -> None:
    """I5: NVML's 8-digit domain, sysfs's four digits and the kernel's address without function are one."""
    assert identity.pci_address(said) == stored


@pytest.mark.parametrize(
    ("one", "other", "contradicts"),
    [
        (CardIdentity(uuid="GPU-a"), CardIdentity(uuid="a"), False),
        (CardIdentity(uuid="GPU-a"), CardIdentity(uuid="GPU-b"), True),
        (CardIdentity(uuid="GPU-a", serial="1"), CardIdentity(uuid="GPU-a", serial="2"), False),
        (CardIdentity(serial="1"), CardIdentity(serial="2"), True),
        (CardIdentity(serial="01"), CardIdentity(uuid="GPU-a", serial="1"), False),
        (CardIdentity(uuid="GPU-a"), CardIdentity(serial="2"), False),
        (CardIdentity(pci_address="0000:18:00.0"), CardIdentity(pci_address="0000:19:00.0"), False),
    ],
)  # fmt: skip
def test_what_speaks_against_one_card(one: CardIdentity, other: CardIdentity, contradicts: bool) -> None:
    assert one.contradicts(other) is contradicts
    assert other.contradicts(one) is contradicts


def test_slot_zero_is_a_slot() -> None:
    assert identity.slot_name(" 0 ") == "0"
    assert identity.slot_name("N/A") == ""


@given(st.text(max_size=60), st.sampled_from(["", "nvidia", "amd"]))
def test_cleaning_twice_is_cleaning_once(text: str, vendor: str) -> None:
    """Whatever a source writes, what is stored is found again."""
    stored = identity.card_uuid(text, vendor)
    assert identity.card_uuid(stored, vendor) == stored
    assert not stored or stored in {*identity.uuid_spellings(stored)} or stored.startswith("MIG-")
    for clean in (identity.card_serial, identity.pci_address, identity.slot_name, identity.system_uuid):
        assert clean(clean(text)) == clean(text)
