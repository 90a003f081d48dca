"""Forms: errors beside the field, nothing lost, what is stored (I3, I4, X5)."""

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from inventory.models import Agent, Bmc, Credential, Discovery, EnrolmentToken, Exporter, JournalEntry, Rack, Site
from sensaka.live import snapshots
from tests.sensaka.pages import seed


@pytest.fixture
def seeded(db: None) -> seed.Seeded:
    snapshots.forget()
    return seed.build(nodes_a_rack=1)


@pytest.fixture
def operator(seeded: seed.Seeded, client: Client) -> Client:
    client.force_login(seeded.users["operator"])
    return client


def bmc_form(seeded: seed.Seeded, **changed: Any) -> dict[str, Any]:
    return {
        "addresses": "10.4.0.0/29",
        "credential": "new",
        "new_name": "iDRAC",
        "new_username": "root",
        "new_password": "s3cret",
        "site": str(seeded.sites["Central"].pk),
        "protocol": "",
        "ports": "",
        "tls": "fingerprint",
        "tls_authority": "",
        "interval": "30",
        **changed,
    }


def test_a_search_for_bmcs_starts(seeded: seed.Seeded, operator: Client) -> None:
    """I3: range, new log-in, place; then the page of the search."""
    answer = operator.post(reverse("enrol-bmc"), bmc_form(seeded))
    row = Discovery.objects.get()
    assert answer["Location"] == reverse("discovery", args=[row.pk])
    assert (row.addresses, row.site, row.credential.name) == ("10.4.0.0/29", seeded.sites["Central"], "iDRAC")
    with connection.cursor() as cursor:
        cursor.execute("SELECT password FROM inventory_credential WHERE name = 'iDRAC'")
        assert b"s3cret" not in cursor.fetchone()[0].encode()
    assert b"10.4.0.0/29" in operator.get(answer["Location"]).content


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"addresses": "not-an-address"}, "addresses"),
        ({"addresses": ""}, "addresses"),
        ({"ports": "70000"}, "ports"),
        ({"ports": "https"}, "ports"),
        ({"interval": "2"}, "interval"),
        ({"new_password": ""}, "new_password"),
        ({"new_name": "BMC default"}, "new_name"),
        ({"tls": "authority"}, "tls_authority"),
        ({"site": ""}, "site"),
    ],
)
def test_a_refused_search_keeps_what_was_typed(
    seeded: seed.Seeded, operator: Client, changed: dict[str, str], field: str
) -> None:
    page = operator.post(reverse("enrol-bmc"), bmc_form(seeded, **changed))
    assert page.status_code == 200
    assert page.context["form"].errors[field]
    html = page.content.decode()
    assert f'id="id_{field}_error"' in html
    for value in ("iDRAC" if "new_name" not in changed else "BMC default", 'value="root"'):
        assert value in html
    assert not Discovery.objects.exists()
    assert not Credential.objects.filter(name="iDRAC").exists()


def test_a_rack_of_another_site_is_refused(seeded: seed.Seeded, operator: Client) -> None:
    rack = Rack.objects.exclude(site=seeded.sites["Central"]).first()
    assert rack is not None
    page = operator.post(reverse("enrol-bmc"), bmc_form(seeded, rack=str(rack.pk)))
    assert "another site" in str(page.context["form"].errors["rack"])


def test_an_exporter_is_added_and_a_second_time_refused(seeded: seed.Seeded, operator: Client) -> None:
    form = {"url": "http://10.1.1.1:9400/metrics", "site": str(seeded.sites["Edge"].pk), "interval": "15", "add": "1"}
    assert operator.post(reverse("enrol-exporter"), form).status_code == 302
    assert Exporter.objects.get(url=form["url"]).interval == 15
    page = operator.post(reverse("enrol-exporter"), form)
    assert page.status_code == 200
    assert page.context["form"].errors["url"]
    assert form["url"] in page.content.decode()


def test_testing_an_exporter_that_is_not_there_adds_nothing(seeded: seed.Seeded, operator: Client) -> None:
    form = {"url": "http://127.0.0.1:9/metrics", "site": str(seeded.sites["Edge"].pk), "interval": "15", "test": "1"}
    page = operator.post(reverse("enrol-exporter"), form)
    assert page.status_code == 200
    assert page.context["tested"].failure is not None
    assert not Exporter.objects.filter(url=form["url"]).exists()


def test_an_agents_token_is_shown_once_with_its_commands(seeded: seed.Seeded, operator: Client) -> None:
    """I4: the stored row has a digest only."""
    form = {"name": "new nodes", "site": str(seeded.sites["Central"].pk), "uses": "4", "days": "7"}
    page = operator.post(reverse("enrol-agent"), form).content.decode()
    token = page.split('id="token"')[1].split(">")[1].split("<")[0]
    assert token.startswith("ske_")
    assert "inventory.agent enrol --server http://testserver --token-file -" in page
    row = EnrolmentToken.objects.get()
    assert (row.uses_left, token in row.digest) == (4, False)


def test_acts_on_collectors(seeded: seed.Seeded, operator: Client) -> None:
    bmc = seeded.bmcs["a01-gpu01"]
    where = f"{reverse('collectors')}?kind=bmc"
    answer = operator.post(reverse("collector-act", args=["bmc", bmc.pk, "disable"]), {"next": where})
    assert answer["Location"] == where
    assert not Bmc.objects.get(pk=bmc.pk).enabled
    operator.post(reverse("collector-act", args=["bmc", bmc.pk, "enable"]))
    operator.post(reverse("collector-act", args=["bmc", bmc.pk, "interval"]), {"interval": "45"})
    operator.post(reverse("collector-act", args=["bmc", bmc.pk, "interval"]), {"interval": "1"})
    operator.post(reverse("collector-act", args=["bmc", bmc.pk, "read"]))
    changed = Bmc.objects.get(pk=bmc.pk)
    assert (changed.enabled, changed.interval) == (True, 45)
    assert JournalEntry.objects.filter(kind="settings_changed", actor=seeded.users["operator"]).count() >= 3
    agent = seeded.agents["a01-gpu01"]
    operator.post(reverse("collector-act", args=["agent", agent.pk, "revoke"]))
    assert Agent.objects.get(pk=agent.pk).revoked_at is not None
    elsewhere = operator.post(reverse("collector-act", args=["bmc", bmc.pk, "read"]), {"next": "https://evil.example/"})
    assert elsewhere["Location"] == reverse("collectors")


def test_deleting_a_collector_asks_first(seeded: seed.Seeded, operator: Client) -> None:
    bmc = seeded.bmcs["a01-gpu01"]
    address = reverse("collector-delete", args=["bmc", bmc.pk])
    assert b"Delete" in operator.get(address).content
    assert Bmc.objects.filter(pk=bmc.pk).exists()
    operator.post(address)
    assert not Bmc.objects.filter(pk=bmc.pk).exists()


def test_places_are_made_changed_and_kept_while_in_use(seeded: seed.Seeded, operator: Client) -> None:
    """I1."""
    add = reverse("place-add", args=["site"])
    bad = operator.post(add, {"name": "North", "kind": "edge", "time_zone": "Mars/Olympus"})
    assert "IANA" in str(bad.context["form"].errors["time_zone"])
    operator.post(add, {"name": "North", "kind": "edge", "time_zone": "Europe/Oslo"})
    north = Site.objects.get(name="North")
    operator.post(
        reverse("place-edit", args=["site", north.pk]), {"name": "Far North", "kind": "edge", "time_zone": "UTC"}
    )
    assert Site.objects.get(pk=north.pk).name == "Far North"
    entry = JournalEntry.objects.filter(kind="settings_changed").first()
    assert entry is not None
    assert (entry.text, entry.actor) == ("Site Far North was saved in the settings.", seeded.users["operator"])
    operator.post(reverse("place-delete", args=["site", north.pk]))
    assert not Site.objects.filter(pk=north.pk).exists()
    central = seeded.sites["Central"]
    page = operator.post(reverse("place-delete", args=["site", central.pk]), follow=True)
    assert b"is in use" in page.content
    assert Site.objects.filter(pk=central.pk).exists()


def test_a_password_is_written_and_never_shown(seeded: seed.Seeded, operator: Client) -> None:
    """X5."""
    row = Credential.objects.get(name="BMC default")
    page = operator.get(reverse("credential-edit", args=[row.pk])).content
    assert b"secret" not in page
    operator.post(
        reverse("credential-edit", args=[row.pk]), {"name": "BMC default", "username": "reader2", "password": ""}
    )
    row.refresh_from_db()
    assert (row.username, row.password) == ("reader2", "secret")


def test_a_model_of_ones_own(seeded: seed.Seeded, operator: Client) -> None:
    """I2."""
    form = {
        "slug": "own-1",
        "vendor": "Own",
        "name": "Own 1",
        "memory_gib": "48",
        "tdp": "300",
        "name_lines": "Own One\nOwn 1 PCIe",
        "pci_lines": "10DE:2330",
        "source": "data sheet",
    }
    assert (
        operator.post(reverse("card-model-add"), {**form, "pci_lines": "nonsense"}).context["form"].errors["pci_lines"]
    )
    operator.post(reverse("card-model-add"), form)
    from inventory.models import CardModel

    row = CardModel.objects.get(slug="own-1")
    assert (row.memory, row.pci_ids, row.name_strings) == (48 * 1024**3, ["10de:2330"], ["Own One", "Own 1 PCIe"])


def test_a_threshold_stands_once(seeded: seed.Seeded, operator: Client) -> None:
    operator.post(reverse("threshold-add"), {"activity": "12.5"})
    page = operator.post(reverse("threshold-add"), {"activity": "20"})
    assert page.context["form"].non_field_errors()
