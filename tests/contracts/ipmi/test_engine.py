"""The login as the BMC's answers lead it, packet by packet, without a network."""

import hashlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inventory.drivers.bmc.ipmi.engine import SHA1, SHA256, Engine
from inventory.drivers.bmc.ipmi.errors import CommandRefused, IpmiError, LoginRefused, completion_kind
from inventory.drivers.bmc.ipmi.session import Session
from inventory.observations import BmcTarget, FailureKind

RMCP = b"\x06\x00\xff\x07"
OPEN_RESPONSE, RAKP2 = 0x11, 0x13


def capabilities(*, version_2: bool = True, md5: bool = True) -> bytes:
    """An answer to Get Channel Authentication Capabilities."""
    data = bytes((1, (0x80 if version_2 else 0) | (0x04 if md5 else 0), 0, 2 if version_2 else 0, 0, 0, 0, 0))
    payload = bytes((0x81, 7 << 2, 0, 0x20, 0, 0x38, 0)) + data + b"\x00"
    return RMCP + bytes(9) + bytes((len(payload),)) + payload


class Dialogue:
    """An engine and what it did."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.opened: list[IpmiError | None] = []
        self.engine = Engine("admin", "secret", send=self.sent.append, opened=self.opened.append)
        self.engine.begin()

    def answer(self, kind: int, payload: bytes) -> None:
        self.engine.received(RMCP + bytes((6, kind)) + bytes(8) + struct.pack("<H", len(payload)) + payload)

    def open_response(self, status: int = 0, algorithm: int = 3, integrity: int = 4) -> None:
        head = bytes((self.engine.rmcptag, status, 4, 0)) + struct.pack("<II", self.engine.localsid, 0xABCD)
        algorithms = bytes((0, 0, 0, 8, algorithm, 0, 0, 0, 1, 0, 0, 8, integrity, 0, 0, 0, 2, 0, 0, 8, 1, 0, 0, 0))
        self.answer(OPEN_RESPONSE, head + algorithms)

    def rakp2(self, status: int) -> None:
        head = bytes((self.engine.rmcptag, status, 0, 0)) + struct.pack("<I", self.engine.localsid)
        self.answer(RAKP2, head + bytes(64))

    @property
    def failure(self) -> IpmiError:
        error = self.opened[-1]
        assert error is not None
        return error


@pytest.fixture
def dialogue() -> Dialogue:
    dialogue = Dialogue()
    dialogue.engine.received(capabilities())
    return dialogue


def test_a_bmc_of_ipmi_1_5_is_told_so() -> None:
    """pyghmi's 1.5 login mixes bytes and text and raises TypeError."""
    dialogue = Dialogue()
    dialogue.engine.received(capabilities(version_2=False))
    assert dialogue.failure.kind is FailureKind.NOT_SUPPORTED


def test_a_wrong_password_shows_in_the_bmcs_proof(dialogue: Dialogue) -> None:
    dialogue.open_response()
    dialogue.rakp2(0)
    assert dialogue.failure.kind is FailureKind.AUTHENTICATION


def test_the_digest_that_the_bmc_chose_is_used(dialogue: Dialogue) -> None:
    """pyghmi takes its own proposal for agreed and crashes on the shorter proof."""
    dialogue.open_response(algorithm=1, integrity=1)
    assert (dialogue.engine.attemptedhash, dialogue.engine.currhashlib) == (SHA1, hashlib.sha1)
    dialogue.rakp2(0)
    assert dialogue.failure.kind is FailureKind.AUTHENTICATION


def test_a_refused_sha256_is_followed_by_sha1(dialogue: Dialogue) -> None:
    assert dialogue.engine.attemptedhash == SHA256
    dialogue.open_response(status=0x11)
    assert dialogue.engine.attemptedhash == SHA1
    dialogue.open_response(status=0x11)
    assert dialogue.failure.kind is FailureKind.NOT_SUPPORTED


def test_a_dropped_sha256_is_followed_by_sha1(dialogue: Dialogue) -> None:
    """A BMC may drop a proposal that it does not know instead of refusing it."""
    dialogue.engine.repeat_login()
    assert dialogue.engine.attemptedhash == SHA1
    dialogue.engine.repeat_login()
    assert dialogue.engine.attemptedhash == SHA256


STATUSES = [
    (0x01, FailureKind.BUSY),
    (0x0F, FailureKind.AUTHENTICATION),
    (0x0C, FailureKind.AUTHENTICATION),
    (0x12, FailureKind.PROTOCOL),
    (0x77, FailureKind.PROTOCOL),
]


@pytest.mark.parametrize(("status", "kind"), STATUSES)
def test_statuses_of_the_login(dialogue: Dialogue, status: int, kind: FailureKind) -> None:
    dialogue.open_response()
    dialogue.rakp2(status)
    assert dialogue.failure.kind is kind


def test_an_account_below_administrator_is_tried_with_less(dialogue: Dialogue) -> None:
    """Operator, then user; after that the name is what the BMC does not know."""
    for expected in (3, 2):
        dialogue.open_response()
        dialogue.rakp2(0x0D)
        assert dialogue.engine.privlevel == expected
        dialogue.engine.received(capabilities())
    dialogue.open_response()
    dialogue.rakp2(0x0D)
    assert dialogue.failure.kind is FailureKind.AUTHENTICATION


async def test_a_password_refused_by_status_02_is_told_from_silence() -> None:
    """pyghmi drops RAKP status 02h as stale, and the login ends as a timeout."""
    target = BmcTarget(address="127.0.0.1", port=9, protocol="ipmi", username="u", password="p")
    session = Session(target, SHA256, lambda: None)
    assert session._silence().kind is FailureKind.TIMEOUT
    session._engine.statuses.append(0x02)
    error = session._silence()
    assert isinstance(error, LoginRefused)
    assert error.kind is FailureKind.AUTHENTICATION


@given(st.lists(st.binary(max_size=80), max_size=5))
def test_noise_from_the_network_is_dropped(packets: list[bytes]) -> None:
    dialogue = Dialogue()
    for packet in packets:
        dialogue.engine.received(packet)
        for kind in (0x00, 0xC0, OPEN_RESPONSE, RAKP2, 0x15):
            dialogue.engine.received(RMCP + bytes((6, kind)) + packet)
        dialogue.engine.received(RMCP + packet)
    assert None not in dialogue.opened


def test_secrets_stay_out_of_errors() -> None:
    target = BmcTarget(address="127.0.0.1", port=9, protocol="ipmi", username="u", password="s3cret")
    assert "s3cret" not in repr(target)


CODES = [
    (0xC0, FailureKind.BUSY),
    (0xC1, FailureKind.NOT_SUPPORTED),
    (0xC3, FailureKind.TIMEOUT),
    (0xD4, FailureKind.PERMISSION),
    (0xFF, FailureKind.PROTOCOL),
]


@pytest.mark.parametrize(("code", "kind"), CODES)
def test_completion_codes(code: int, kind: FailureKind) -> None:
    assert completion_kind(code) is kind
    failure = CommandRefused(code, 0x04, 0x2D).failure("GPU1 Temp")
    assert (failure.what, failure.kind) == ("GPU1 Temp", kind)
    assert "04h/2Dh" in failure.detail
