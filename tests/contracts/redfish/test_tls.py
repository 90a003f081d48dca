"""I3: certificates are checked by policy, and a wrong one never sees the password."""

import pytest

from inventory.drivers.fake.redfish import self_signed
from inventory.observations import FailureKind, TlsPolicy
from tests.contracts.redfish.conftest import PASSWORD, Open, Serve, target_of
from tests.contracts.redfish.trees import dell


async def test_the_first_visit_returns_the_fingerprint(serve: Serve, connect: Open) -> None:
    """Trust on first use: an empty pin accepts and tells what to pin."""
    server = await serve(dell())
    for policy in (TlsPolicy.FINGERPRINT, TlsPolicy.OFF):
        reading = await connect(server, tls=policy).discover(deadline=20)
        assert reading.reached
        assert reading.tls_fingerprint == server.fingerprint


@pytest.mark.parametrize("spelling", ["{}", "SHA256:{}", "colons"])
async def test_the_pinned_certificate_is_accepted_however_it_is_spelt(
    serve: Serve, connect: Open, spelling: str
) -> None:
    server = await serve(dell())
    text = server.fingerprint.upper()
    pin = ":".join(text[n : n + 2] for n in range(0, 64, 2)) if spelling == "colons" else spelling.format(text)
    assert (await connect(server, tls=TlsPolicy.FINGERPRINT, tls_fingerprint=pin).poll(deadline=20)).reached


async def test_another_certificate_is_a_tls_failure_and_no_password_was_sent(serve: Serve, connect: Open) -> None:
    server = await serve(dell())
    driver = connect(server, tls=TlsPolicy.FINGERPRINT, tls_fingerprint="ab" * 32)
    reading = await driver.discover(deadline=20)
    assert not reading.reached
    assert [failure.kind for failure in reading.failures] == [FailureKind.TLS]
    assert server.fingerprint in reading.failures[0].detail
    assert server.log.total == 0
    assert not server.log.saw_credentials


async def test_a_certificate_that_changes_between_connections_is_refused(serve: Serve, connect: Open) -> None:
    """Every connection is compared: a driver with links and no pin stays with the one it saw first."""
    server = await serve(dell())
    driver = connect(server, tls=TlsPolicy.FINGERPRINT)
    assert (await driver.discover(deadline=20)).reached
    port = server.port
    await server.stop()
    impostor = await serve(dell(), port=port)
    reading = await driver.poll(deadline=20)
    assert not reading.reached or not reading.cards
    assert FailureKind.TLS in {failure.kind for failure in reading.failures}
    assert not impostor.log.saw_credentials


async def test_an_authority_is_followed(serve: Serve, connect: Open) -> None:
    certificate = self_signed("127.0.0.1")
    server = await serve(dell(), certificate=certificate)
    good = connect(server, tls=TlsPolicy.AUTHORITY, tls_authority=certificate.certificate)
    assert (await good.discover(deadline=20)).reached
    server.log.clear()
    cases = {
        "another authority": {"tls_authority": self_signed("127.0.0.1").certificate},
        "no authority": {"tls_authority": ""},
        "not a certificate": {"tls_authority": "-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----\n"},
        "another name": {"tls_authority": certificate.certificate, "address": "127.0.0.2"},
    }
    for name, changes in cases.items():
        reading = await connect(server, tls=TlsPolicy.AUTHORITY, **changes).discover(deadline=5)
        assert not reading.reached, name
        expected = {FailureKind.TLS, FailureKind.UNREACHABLE} if name == "another name" else {FailureKind.TLS}
        assert {failure.kind for failure in reading.failures} <= expected, name
    assert server.log.total == 0


async def test_plain_http_behind_the_port_is_a_tls_failure(serve: Serve, connect: Open) -> None:
    server = await serve(dell(), tls=False)
    reading = await connect(server).discover(deadline=10)
    assert [failure.kind for failure in reading.failures] == [FailureKind.TLS]


async def test_no_text_of_the_driver_holds_the_password(serve: Serve, connect: Open) -> None:
    server = await serve(dell())
    target = target_of(server, password="wrong " + PASSWORD)
    driver = connect(server, password=target.password)
    reading = await driver.discover(deadline=10)
    assert PASSWORD not in f"{reading!r} {target!r} {driver.export_links()!r}"
