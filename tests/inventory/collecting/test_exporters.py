"""Exporter pages over HTTP: whose they are, what they give, and how they are managed (I4)."""

from typing import Any

import pytest
from django.utils import timezone

from inventory.models import Card, Exporter, JournalEntry, Node, Site
from inventory.observations import CardReading, NodeReading
from inventory.selectors.samples import current_samples
from inventory.services import collectors, polling
from inventory.services.nodes import find_or_create_node
from inventory.services.observe import record_node_reading
from sensaka.identity.models import User
from sensaka.kernel.errors import Conflict, InvalidInput
from tests.inventory.collecting.conftest import Peers

pytestmark = pytest.mark.django_db
UUID = "GPU-0a1b2c3d-1111-2222-3333-{:012d}"


def page(host: str, *numbers: int, pod: str = "") -> str:
    lines = ["# TYPE DCGM_FI_DEV_GPU_UTIL gauge", "# TYPE DCGM_FI_DEV_POWER_USAGE gauge"]
    for number in numbers:
        labels = (
            f'gpu="{number}",UUID="{UUID.format(number)}",pci_bus_id="00000000:{number + 16:02X}:00.0",'
            f'device="nvidia{number}",modelName="NVIDIA H100 80GB HBM3",Hostname="{host}",'
            f'DCGM_FI_DRIVER_VERSION="550.90.07",container="",namespace="",pod="{pod}"'
        )
        lines += [f"DCGM_FI_DEV_GPU_UTIL{{{labels}}} {number + 40}", f"DCGM_FI_DEV_POWER_USAGE{{{labels}}} 612.345000"]
    return "\n".join(lines) + "\n"


@pytest.fixture
def operator(db: None) -> User:
    return User.objects.create(username="op", role="operator")


def scrape_again() -> None:
    Exporter.objects.update(due_at=timezone.now())
    polling.scrape_due_exporters()


def test_a_page_makes_its_node_and_cards(peers: Peers, site: Site, operator: User) -> None:
    """I4: an unknown host becomes a node with the page's cards and their samples."""
    row = collectors.add_exporter(url=peers.page(page("n01", 0, 1)), site=site, actor=operator)
    assert polling.scrape_due_exporters().read == 1
    row.refresh_from_db()
    assert (row.error_kind, row.flavour, row.hostname, row.cards_seen) == ("", "dcgm", "n01", 2)
    assert row.node is not None
    assert (row.node.name, row.node.driver_version, row.node.simulated) == ("n01", "550.90.07", True)
    cards = {card.uuid: card for card in Card.objects.all()}
    assert set(cards) == {UUID.format(0), UUID.format(1)}
    series = cards[UUID.format(1)].series
    sample = current_samples([series])[series]
    assert (sample.values.utilization, sample.source) == (41.0, "exporter")
    assert row.due_at > timezone.now()


def test_a_page_belongs_to_the_host_that_it_names(peers: Peers, site: Site, operator: User) -> None:
    """I4: the site's node of that name is found, also by its short name."""
    node = find_or_create_node(machine_id="m", hostname="n01", site=site, at=timezone.now(), source="agent")
    row = collectors.add_exporter(url=peers.page(page("n01.example.org", 0)), site=site, actor=operator)
    polling.scrape_due_exporters()
    row.refresh_from_db()
    assert row.node == node
    assert Node.objects.count() == 1


def test_a_page_without_a_known_name_belongs_where_its_cards_are(peers: Peers, site: Site, operator: User) -> None:
    """I4: an exporter in a pod names the pod; its cards tell the node."""
    node = find_or_create_node(machine_id="m", hostname="n01", site=site, at=timezone.now(), source="agent")
    cards = tuple(
        CardReading(uuid=UUID.format(number), pci_address=f"0000:{number + 16:02x}:00.0") for number in (0, 1)
    )
    reading = NodeReading(observed_at=timezone.now(), hostname="n01", cards=cards)
    record_node_reading(node=node, source="agent", collector_id=node.id, reading=reading)
    row = collectors.add_exporter(url=peers.page(page("dcgm-exporter-x7k", 0, 1)), site=site, actor=operator)
    polling.scrape_due_exporters()
    row.refresh_from_db()
    assert row.node == node
    assert Card.objects.count() == 2


def test_a_silent_page_is_a_failure_and_removes_nobody(peers: Peers, site: Site, operator: User) -> None:
    """U4: no page, no change in the tree."""
    texts = [page("n01", 0)]
    row = collectors.add_exporter(url=peers.page(texts), site=site, actor=operator)
    polling.scrape_due_exporters()
    texts[0] = "<html>maintenance</html>"
    scrape_again()
    row.refresh_from_db()
    assert row.error_kind == "protocol"
    assert row.failing_since is not None
    assert Card.objects.get().state == "present"
    texts[0] = page("n01", 1)
    scrape_again()
    assert dict(Card.objects.values_list("uuid", "state")) == {UUID.format(0): "missing", UUID.format(1): "present"}


@pytest.mark.parametrize(
    "url",
    [
        "",
        "n01:9400/metrics",
        "ftp://n01/metrics",
        "http://",
        "http://n01:99999/",
        "file:///etc/passwd",
        "http://[::1/x",
    ],
)
def test_unusable_addresses_are_refused(url: str, site: Site, operator: User) -> None:
    with pytest.raises(InvalidInput):
        collectors.add_exporter(url=url, site=site, actor=operator)


def test_managing_leaves_a_trace(site: Site, operator: User) -> None:
    """I12: who added, changed, switched and removed a source stands in the journal."""
    row = collectors.add_exporter(url="http://127.0.0.1:9/metrics", site=site, actor=operator)
    with pytest.raises(Conflict):
        collectors.add_exporter(url="http://127.0.0.1:9/metrics", site=site, actor=operator)
    collectors.change_interval(collector=row, interval=60, actor=operator)
    collectors.change_interval(collector=row, interval=60, actor=operator)
    collectors.set_enabled(collector=row, enabled=False, actor=operator)
    with pytest.raises(InvalidInput):
        collectors.read_now(collector=row, actor=operator)
    collectors.set_enabled(collector=row, enabled=True, actor=operator)
    with pytest.raises(InvalidInput):
        collectors.change_interval(collector=row, interval=1, actor=operator)
    collectors.remove(collector=row, actor=operator)
    entries = JournalEntry.objects.order_by("created_at", "id")
    assert [entry.text for entry in entries] == [
        "The exporter at http://127.0.0.1:9/metrics was added at site Frankfurt.",
        "The exporter at http://127.0.0.1:9/metrics is read every 60 s instead of every 30 s.",
        "The exporter at http://127.0.0.1:9/metrics was switched off.",
        "The exporter at http://127.0.0.1:9/metrics was switched on.",
        "The exporter at http://127.0.0.1:9/metrics was removed.",
    ]
    assert {entry.actor for entry in entries} == {operator}
    assert not Exporter.objects.exists()


def test_trying_a_page_keeps_nothing(peers: Peers, site: Site) -> None:
    tried = collectors.test_exporter(url=peers.page(page("n01", 0, 1)))
    assert (tried.flavour, tried.hostname, len(tried.reading.cards), tried.failure) == ("dcgm", "n01", 2, None)
    dead = collectors.test_exporter(url="http://127.0.0.1:9/metrics")
    assert dead.failure is not None
    assert not Node.objects.exists()


def test_the_next_turn_stays_on_its_grid() -> None:
    """Late and long reads shift nothing."""
    from datetime import timedelta

    from inventory.services.outcomes import next_turn

    start = timezone.now()
    cases: list[tuple[float, float]] = [(0, 30), (4, 30), (29.9, 30), (30, 60), (31, 60), (3601, 3630), (-5, 30)]
    for now, expected in cases:
        turn: Any = next_turn(due_at=start, interval=30, now=start + timedelta(seconds=now))
        assert (turn - start).total_seconds() == expected, now
