"""Text that devices send is shown and never run: every page that shows a hostile report, read as a browser reads it."""

import json
from html.parser import HTMLParser

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from inventory.models import Bmc, Card, Cluster, Discovery, Exporter, JournalEntry, Node, Rack, Site
from sensaka.live import fleet, snapshots
from tests.inventory.test_agents_api import enrol, post
from tests.sensaka.pages import seed
from tests.sensaka.pages.test_pages_open import addresses

MARK = "xssmark"
BREAKERS = f"<{MARK}>\"><{MARK} on{MARK}=1>'><{MARK}></script><{MARK}>\u202e"
SHORT = f"\"><{MARK} x='"
UUID = "GPU-0a1b2c3d-1111-4222-8333-444444444444"


class Found(HTMLParser):
    """What of the mark became markup: elements, attributes, targets of links."""

    def __init__(self) -> None:
        super().__init__()
        self.bad: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if MARK in tag or any(MARK in name for name, _ in attrs):
            self.bad.append(self.get_starttag_text() or tag)
        for name, value in attrs:
            if name in ("href", "src", "action", "hx-get") and (value or "").strip().lower().startswith("javascript:"):
                self.bad.append(f"{tag} {name}={value}")


def marked_up(page: str) -> list[str]:
    found = Found()
    found.feed(page)
    return found.bad


def test_the_detector_finds_what_it_looks_for() -> None:
    assert len(marked_up(f"<p>{BREAKERS}</p>")) == 4
    assert marked_up(f'<a title="{BREAKERS}">')


@pytest.fixture
def made(db: None) -> seed.Seeded:
    fleet.forget()
    snapshots.forget()
    made = seed.build(nodes_a_rack=2)
    told = enrol(Site.objects.create(name=f"s{SHORT}"), hostname=BREAKERS, system_serial=f"sn{SHORT}")
    card = {name: f"{name}{SHORT}" for name in ("serial", "pci_address", "vendor", "model_name", "slot", "part_number")}
    card |= {
        "uuid": UUID,
        "model_name": BREAKERS,
        "vbios": BREAKERS,
        "firmware": BREAKERS,
        "partition_mode": SHORT[:15],
    }
    card |= {"slices": [{"uuid": f"MIG-{SHORT}", "profile": SHORT, "instance_id": SHORT}], "mig_enabled": True}
    card |= {"failures": [{"what": BREAKERS, "kind": "timeout", "detail": BREAKERS}]}
    process = dict.fromkeys(("user", "container_id", "pod_uid", "pod", "namespace", "slurm_job_id"), f"{SHORT}")
    processes = [
        {"pid": 7, "card_uuid": UUID, "name": BREAKERS, **process},
        {"pid": 8, "card_uuid": UUID, "name": BREAKERS, "pod": SHORT, "namespace": SHORT},
        {"pid": 9, "card_uuid": UUID, "name": BREAKERS, "container_id": SHORT},
    ]
    for driver in ("1", BREAKERS):
        body = {
            "observed_at": timezone.now().isoformat(), "hostname": BREAKERS, "driver_version": driver,
            "boot_id": driver, "cards": [card], "processes": processes,
            "failures": [{"what": BREAKERS, "kind": "lost", "detail": BREAKERS}],
        }  # fmt: skip
        answer = post("/api/v1/agents/report/", body, token=told["token"])
        assert answer.status_code == 200, answer.content
    node = Node.objects.get(pk=told["node"])
    node.rack = Rack.objects.create(site=node.site, name=SHORT)
    node.cluster = Cluster.objects.create(site=node.site, name=SHORT)
    node.product = node.manufacturer = BREAKERS[:100]
    node.labels = {BREAKERS: BREAKERS}
    node.save()
    sensor = {
        "name": BREAKERS,
        "kind": BREAKERS,
        "unit": BREAKERS,
        "value": 1.5,
        "upper_critical": 2.0,
        "state": BREAKERS,
    }
    failure = {"what": BREAKERS, "kind": BREAKERS, "detail": BREAKERS}
    Bmc.objects.filter(node__name="a01-gpu01").update(
        node=node, product=SHORT, vendor=SHORT, firmware=SHORT, error_kind="timeout", error_detail=BREAKERS,
        failing_since=timezone.now(), sensors=[sensor], failures=[failure],
    )  # fmt: skip
    Exporter.objects.update(node=node, hostname=BREAKERS[:200], flavour=SHORT[:16], error_detail=BREAKERS)
    made.users["operator"].first_name = BREAKERS[:100]
    made.users["operator"].save()
    made.cards[0] = Card.objects.get(uuid=UUID)
    made.nodes["a01-gpu01"] = node
    return made


def test_what_a_device_says_is_never_markup(made: seed.Seeded, client: Client) -> None:
    """U1, U4: names, serials, sensors, processes, failures and the journal, on pages, in parts and in their JSON."""
    client.force_login(made.users["operator"])
    assert JournalEntry.objects.filter(text__contains=MARK).exists()
    shown = 0
    tried = addresses(made)
    bmc = made.bmcs["a02-gpu01"]
    discovery = Discovery.objects.create(
        addresses=BREAKERS[:200], credential=bmc.credential, site=made.sites["Edge"], total=1, tried=1, found=0,
        results=[{"address": BREAKERS, "outcome": "failed", "kind": BREAKERS, "detail": BREAKERS, "name": BREAKERS}],
    )  # fmt: skip
    node = made.nodes["a01-gpu01"]
    tried |= {
        "discovery": reverse("discovery", args=[discovery.pk]),
        "search": reverse("search") + f"?q={MARK}",
        "search words": reverse("search") + "?q=%3Cxssmark%20onxssmark=1%3E",
        "cards searched": reverse("cards") + "?q=%22%3E%3Cxssmark%3E&sort=%22%3E%3Cxssmark%3E",
        "journal searched": reverse("journal") + "?q=%22%3E%3Cxssmark%3E",
        "place": reverse("place-edit", args=["site", node.site_id]),
        "place deleted": reverse("place-delete", args=["rack", node.rack_id]),
        "not found": "/%3Cxssmark%3E/",
    }
    for name, address in tried.items():
        for headers in ({}, {"HX-Request": "true"}):
            answer = client.get(address, headers=headers)
            assert answer.status_code in (200, 404), name
            text = answer.content.decode()
            if answer["Content-Type"].startswith("application/json"):
                json.loads(text)
            else:
                assert not marked_up(text), (name, marked_up(text))
            shown += MARK in text
    assert shown > 30
