"""FRU, GUIDs and the controller's name, whole and damaged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.drivers.bmc.ipmi.errors import BadAnswer, CommandRefused
from inventory.drivers.bmc.ipmi.identity import Product, guid_text, product_of, read_name, read_product
from sensaka.fleet.ipmi_image import fru
from tests.contracts.ipmi.scripted import ScriptedSession

IMAGE = fru(manufacturer="Supermicro", product="SYS-821GE-TNHR", serial="S123", asset="row 4")


class Store:
    """A FRU that answers reads up to `most` bytes, else with `code`."""

    def __init__(self, image: bytes, *, most: int = 255, code: int = 0xC8, tail: int = 0) -> None:
        self.image, self.most, self.code, self.tail = image, most, code, tail

    def size(self, _request: bytes) -> bytes:
        return (len(self.image) + self.tail).to_bytes(2, "little") + b"\x00"

    def read(self, request: bytes) -> bytes | int:
        offset, count = int.from_bytes(request[1:3], "little"), request[3]
        if count > self.most:
            return self.code
        part = self.image[offset : offset + count]
        return bytes((len(part),)) + part

    def session(self) -> ScriptedSession:
        return ScriptedSession({(0x0A, 0x10): self.size, (0x0A, 0x11): self.read})


@pytest.mark.parametrize("code", [0xC7, 0xC8, 0xC9, 0xCA, 0xFF])
@pytest.mark.parametrize("most", [255, 64, 32, 16, 8])
async def test_pieces_shrink_until_the_bmc_answers(code: int, most: int) -> None:
    product = await read_product(Store(IMAGE, most=most, code=code).session())
    assert product == Product(manufacturer="Supermicro", model="SYS-821GE-TNHR", serial="S123", asset="row 4")


async def test_a_bmc_that_answers_no_piece_is_given_up() -> None:
    session = Store(IMAGE, most=4).session()
    with pytest.raises(CommandRefused):
        await read_product(session)
    assert len(session.asked) < 10


async def test_a_long_multi_record_area_is_not_read() -> None:
    session = Store(IMAGE, most=16, tail=4096).session()
    assert (await read_product(session)).serial == "S123"
    assert len(session.asked) < 25


@pytest.mark.parametrize("image", [b"", b"\x00" * 64, b"\xff" * 64, IMAGE[:7] + b"\x00" + IMAGE[8:]])
async def test_a_blank_or_damaged_header_is_a_bad_answer(image: bytes) -> None:
    with pytest.raises(BadAnswer):
        await read_product(Store(image).session())


def test_a_board_alone_names_the_node() -> None:
    image = bytearray(IMAGE)
    image[4] = 0
    assert product_of(bytes(image)) == Product(manufacturer="Supermicro", model="SYS-821GE-TNHR board", serial="S123-B")


@given(st.binary(min_size=8, max_size=300))
def test_any_image_is_a_product_or_a_bad_answer(image: bytes) -> None:
    try:
        product = product_of(b"\x01" + image)
    except BadAnswer:
        return
    assert all(len(text) <= 200 for text in (product.manufacturer, product.model, product.serial, product.asset))


def test_guids() -> None:
    """SMBIOS order: the first three fields are little-endian."""
    wire = bytes.fromhex("33221100554477668899aabbccddeeff")
    assert guid_text(wire) == "00112233-4455-6677-8899-aabbccddeeff"
    for unset in (bytes(16), b"\xff" * 16, b"", b"\x01" * 15):
        assert guid_text(unset) == ""


@pytest.mark.parametrize("name", ["node17-bmc", "a-rather-long-name-of-a-controller.example.org", ""])
async def test_the_name_is_read_in_pieces(name: str) -> None:
    text = name.encode() + b"\x00"

    def read(request: bytes) -> bytes:
        _, offset, count = request
        return bytes((0xDC, len(text))) + text[offset : offset + count]

    assert await read_name(ScriptedSession({(0x2C, 0x09): read})) == name
