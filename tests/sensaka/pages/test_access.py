"""Who gets which page (X3): anonymous nobody, members none of the inventory, auditors read, operators act."""

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from inventory.models import Bmc, Site
from sensaka.identity.models import ApiToken, User
from sensaka.live import snapshots
from tests.sensaka.pages import seed
from tests.sensaka.pages.test_pages_open import OPERATOR_ONLY, addresses

PUBLIC = {"healthz", "readyz", "metrics", "sign-in", "sign-out"}
OWN = {"profile", "tokens", "token-revoke", "search", "overview"}


@pytest.fixture
def seeded(db: None) -> seed.Seeded:
    snapshots.forget()
    return seed.build(nodes_a_rack=1)


def _patterns(resolver: URLResolver) -> list[URLPattern]:
    found: list[URLPattern] = []
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver):
            found += [] if str(entry.pattern).startswith("api/") else _patterns(entry)
        elif not str(entry.pattern).startswith("api/"):
            found.append(entry)
    return found


def test_an_anonymous_visitor_is_sent_to_the_sign_in_page(seeded: seed.Seeded, client: Client) -> None:
    """Every named address is tried, so that a new page can't be forgotten."""
    some = {"kind": "bmc", "name": "read", "part": "cards", "reference": seed.missing_id()}
    tried = 0
    for pattern in _patterns(get_resolver()):
        if pattern.name in PUBLIC:
            continue
        wanted = {key: some.get(key, seed.missing_id()) for key in pattern.pattern.converters}
        for method in (client.get, client.post):
            answer = method(reverse(pattern.name, kwargs=wanted))
            assert answer.status_code == 302, pattern.name
            assert answer["Location"].startswith(reverse("sign-in")), pattern.name
        tried += 1
    assert tried > 40


def test_a_member_gets_no_inventory(seeded: seed.Seeded, client: Client) -> None:
    client.force_login(seeded.users["member"])
    for name, address in addresses(seeded).items():
        answer = client.get(address)
        if name in OWN:
            assert answer.status_code == 200, name
        else:
            assert answer.status_code == 403, name
            assert b"for operators and auditors" in answer.content, name
            assert seeded.cards[0].uuid.encode() not in answer.content


def test_an_auditor_reads_and_changes_nothing(seeded: seed.Seeded, client: Client) -> None:
    client.force_login(seeded.users["auditor"])
    for name, address in addresses(seeded).items():
        assert client.get(address).status_code == 200, name
    for name in OPERATOR_ONLY:
        assert client.get(reverse(name)).status_code == 403, name
    bmc = seeded.bmcs["a01-gpu01"]
    acts = [
        reverse("collector-act", args=["bmc", bmc.pk, "disable"]),
        reverse("collector-delete", args=["bmc", bmc.pk]),
        reverse("place-add", args=["site"]),
        reverse("place-delete", args=["site", bmc.site_id]),
        reverse("enrol-bmc"),
        reverse("user-edit", args=[seeded.users["member"].pk]),
    ]
    for address in acts:
        assert client.post(address, {"name": "x"}).status_code == 403, address
    assert Bmc.objects.get(pk=bmc.pk).enabled
    assert b"Add a source" not in client.get(reverse("collectors")).content
    assert b"dropdown-toggle" in client.get(reverse("collectors")).content  # the account's menu only
    assert client.get(reverse("collectors")).content.count(b"collector-act") == 0


def test_an_auditors_token_can_only_read(seeded: seed.Seeded, client: Client) -> None:
    client.force_login(seeded.users["auditor"])
    answer = client.post(reverse("tokens"), {"name": "t", "scope": "write", "days": "30"})
    assert answer.status_code == 200
    assert not ApiToken.objects.exists()


def test_tokens_are_shown_once_and_revoked(seeded: seed.Seeded, client: Client) -> None:
    """X2, X3: name, scope, expiry; the plain text is in one answer only and works over REST."""
    client.force_login(seeded.users["operator"])
    page = client.post(reverse("tokens"), {"name": "backup", "scope": "read", "days": "30"}).content.decode()
    plain = page.split('id="new-token"')[1].split(">")[1].split("<")[0]
    assert plain.startswith("sk_")
    assert plain not in client.get(reverse("tokens")).content.decode()
    row = ApiToken.objects.get()
    assert (row.name, row.scope) == ("backup", "read")
    outsider = Client()
    assert outsider.get("/api/v1/sites/", headers={"Authorization": f"Token {plain}"}).status_code == 200
    client.force_login(seeded.users["auditor"])
    assert client.post(reverse("token-revoke", args=[row.reference])).status_code == 404
    client.force_login(seeded.users["operator"])
    client.post(reverse("token-revoke", args=[row.reference]))
    assert outsider.get("/api/v1/sites/", headers={"Authorization": f"Token {plain}"}).status_code == 401


def test_operators_cannot_lock_themselves_out(seeded: seed.Seeded, client: Client) -> None:
    operator = seeded.users["operator"]
    client.force_login(operator)
    answer = client.post(reverse("user-edit", args=[operator.pk]), {"role": "auditor", "is_active": "on"})
    assert answer.status_code == 200
    assert User.objects.get(pk=operator.pk).operates


def test_wrong_passwords_lock_the_name(seeded: seed.Seeded, client: Client, settings: object) -> None:
    settings.AXES_ENABLED = True  # type: ignore[attr-defined]
    for _ in range(10):
        answer = client.post(reverse("sign-in"), {"username": "auditor", "password": "wrong"})
    assert answer.status_code == 429
    assert b"Too many wrong passwords" in answer.content


def test_probes_are_open_and_tell_nothing_but_counts(seeded: seed.Seeded, client: Client) -> None:
    assert client.get("/healthz").content == b"ok\n"
    ready = client.get("/readyz")
    assert (ready.status_code, ready.json()["ready"]) == (200, True)
    metrics = client.get("/metrics").content.decode()
    assert 'sensaka_cards{count="installed"} 28.0' in metrics
    for secret in (seeded.cards[0].uuid, "a01-gpu01", "10.0.0.1", "Central"):
        assert secret not in metrics


def test_a_first_run_says_what_to_do(db: None, client: Client) -> None:
    snapshots.forget()
    client.force_login(seed.people()["operator"])
    page = client.get(reverse("overview")).content
    assert b"Add the first site" in page
    assert not Site.objects.exists()
    for name in ("map", "tree", "nodes", "cards", "collectors", "enrol", "places", "journal"):
        assert client.get(reverse(name)).status_code == 200, name
