"""A small fleet in the database: three sites, every state that a page has to show, made by the real writer."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.utils import timezone

from inventory.models import (
    Agent,
    Bmc,
    Card,
    CardModel,
    Cluster,
    Credential,
    Exporter,
    FirmwareComponent,
    JournalEntry,
    JournalKind,
    Node,
    Placement,
    ProcessBinding,
    Rack,
    Sighting,
    Site,
    Slice,
)
from inventory.observations import CardValues
from inventory.services.samples import Sample, write_samples
from sensaka.identity.models import Role, User

GIB = 1024**3
PASSWORD = "correct horse battery"


@dataclass
class Seeded:
    """What was made, by name."""

    sites: dict[str, Site] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    cards: list[Card] = field(default_factory=list)
    slices: list[Slice] = field(default_factory=list)
    agents: dict[str, Agent] = field(default_factory=dict)
    bmcs: dict[str, Bmc] = field(default_factory=dict)
    exporter: Exporter | None = None
    users: dict[str, User] = field(default_factory=dict)


def values(utilization: float | None, **more: float) -> CardValues:
    """A plausible sample; None leaves the activity out."""
    busy = (utilization or 0) / 100
    known: dict[str, float] = (
        {} if utilization is None else {"utilization": utilization, "sm_activity": utilization * 0.9}
    )
    return CardValues(
        **{
            **known,
            "tensor_activity": utilization * 0.5 if utilization is not None else None,
            "memory_activity": utilization * 0.4 if utilization is not None else None,
            "memory_used": int((4 + 60 * busy) * GIB),
            "temperature": 32 + 40 * busy,
            "memory_temperature": 36 + 42 * busy,
            "power": 90 + 560 * busy,
            "power_limit": 700,
            "sm_clock": 1200 + 700 * busy,
            "memory_clock": 2619,
            "throttle_reasons": 0x4 if busy > 0.8 else 0,
            "pcie_tx": 1e9 * busy,
            "pcie_rx": 2e9 * busy,
            "nvlink_tx": 4e10 * busy,
            "nvlink_rx": 4e10 * busy,
            "energy": 5e9,
            "ecc_corrected": 0,
            "ecc_uncorrected": 0,
            "pcie_replays": 0,
            "nvlink_errors": 0,
            "remapped_rows": 0,
            "xid": 0,
            **more,
        }
    )


def people() -> dict[str, User]:
    """An operator, an auditor and a member, all with PASSWORD."""
    return {role.value: User.objects.create_user(username=role.value, password=PASSWORD, role=role) for role in Role}


def build(*, nodes_a_rack: int = 2, now: datetime | None = None) -> Seeded:
    """Three sites: central with 2 racks, regional and edge with one. Cards busy, idle, unknown, failed, missing."""
    now = (now or timezone.now()).replace(microsecond=0)
    made = Seeded(users=people())
    h100, _ = CardModel.objects.get_or_create(
        slug="test-h100",
        defaults={
            "vendor": "NVIDIA",
            "name": "Test H100 SXM 80 GB",
            "memory": 80 * GIB,
            "tdp": 700,
            "nvlink_links": 18,
        },
    )
    a100, _ = CardModel.objects.get_or_create(
        slug="test-a100", defaults={"vendor": "NVIDIA", "name": "Test A100 SXM 80 GB", "memory": 80 * GIB, "tdp": 400}
    )
    credential = Credential.objects.create(name="BMC default", username="reader", password="secret")
    plan = (
        ("Central", "central", ("A01", "A02"), 8),
        ("Regional", "regional", ("R01",), 8),
        ("Edge", "edge", ("E01",), 4),
    )
    samples: list[Sample] = []
    for site_name, kind, racks, cards in plan:
        site = Site.objects.create(name=site_name, kind=kind, time_zone="Europe/Zurich", simulated=True)
        made.sites[site_name] = site
        cluster = Cluster.objects.create(site=site, name=f"{kind}-cluster")
        for rack_name in racks:
            rack = Rack.objects.create(site=site, name=rack_name, design_power=20_000)
            for number in range(1, nodes_a_rack + 1):
                name = f"{rack_name.lower()}-gpu{number:02d}"
                node = Node.objects.create(
                    site=site,
                    cluster=cluster,
                    rack=rack,
                    rack_position=number * 8,
                    name=name,
                    state="active",
                    system_serial=f"SN-{name}",
                    manufacturer="Example",
                    product="GPU server",
                    driver_version="580.95.05",
                    runtime_version="13.0",
                    power_state="on",
                    power=3200.0,
                    inlet_temperature=23.5,
                    read_at=now,
                    simulated=True,
                )
                made.nodes[name] = node
                _sources(made, node, site, rack, cluster, credential, now)
                model = a100 if kind == "edge" else h100
                for slot in range(1, cards + 1):
                    card = _card(made, node, model, slot, now)
                    samples.extend(_samples(card, slot, number, now))
    _special(made, now, samples)
    write_samples(samples, now=now)
    return made


def _card(made: Seeded, node: Node, model: CardModel, slot: int, now: datetime) -> Card:
    card = Card.objects.create(
        node=node,
        model=model,
        vendor="NVIDIA",
        model_name=model.name,
        uuid=f"GPU-{uuid4()}",
        serial=f"16{node.name}{slot:02d}",
        pci_address=f"00000000:{slot:02x}:00.0",
        pci_id="10de:2330",
        slot=f"SXM{slot}",
        memory_total=80 * GIB,
        mig_enabled=False,
        nvlink_active=18,
        pcie_generation=5,
        pcie_width=16,
        first_seen_at=now - timedelta(days=40),
        state_since=now - timedelta(days=40),
        simulated=True,
    )
    card.refresh_from_db()
    made.cards.append(card)
    Placement.objects.create(
        card=card,
        node=node,
        slot=card.slot,
        pci_address=card.pci_address,
        span=DateTimeTZRange(now - timedelta(days=40), None),
    )
    Sighting.objects.create(
        card=card,
        source="agent",
        collector_id=made.agents[node.name].pk,
        node=node,
        seen_at=now,
        identity={"uuid": card.uuid},
    )
    return card


def _samples(card: Card, slot: int, number: int, now: datetime) -> list[Sample]:
    """An hour of samples, one a minute; each third card idles, slot 7 has a gap, slot 8 of the first node is silent."""
    if slot == 8 and number == 1:
        return [Sample(card.series, now - timedelta(minutes=30), "agent", 10, values(50))]
    found = []
    for minute in range(60, -1, -1):
        if slot == 7 and 20 < minute < 40:
            continue
        load = 0.0 if slot % 3 == 0 else 60 + 30 * ((minute + slot) % 10) / 10
        found.append(Sample(card.series, now - timedelta(minutes=minute), "agent", 60, values(load)))
    return found


def _sources(
    made: Seeded, node: Node, site: Site, rack: Rack, cluster: Cluster, credential: Credential, now: datetime
) -> None:
    index = len(made.nodes)
    made.bmcs[node.name] = Bmc.objects.create(
        node=node,
        site=site,
        cluster=cluster,
        rack=rack,
        address=f"10.0.0.{index}",
        protocol="redfish",
        credential=credential,
        vendor="Example",
        product="BMC 5",
        firmware="1.2.3",
        attempted_at=now,
        succeeded_at=now,
        elapsed=0.84,
        requests=23,
        cards_seen=8,
        interval=3600,
        due_at=now + timedelta(seconds=30),
        simulated=True,
        sensors=[
            {"name": "Inlet Temp", "kind": "temperature", "unit": "C", "value": 23.5, "upper_critical": 45.0},
            {"name": "GPU 1 TEMP 1", "kind": "margin", "unit": "C", "value": 38.0, "lower_critical": -2.0},
            {"name": "Fan 1", "kind": "fan", "unit": "RPM", "value": 11250.0},
            {"name": "PSU 1 Input", "kind": "power", "unit": "W", "value": 1612.0},
        ],
    )
    made.agents[node.name] = Agent.objects.create(
        node=node,
        token_digest=uuid4().hex,
        version="0.1.0",
        attempted_at=now,
        succeeded_at=now,
        cards_seen=8,
        spooled=0,
        interval=3600,
        simulated=True,
    )
    FirmwareComponent.objects.create(node=node, component="BIOS", version="2.14.1", source="bmc", read_at=now)
    JournalEntry.objects.create(
        at=now - timedelta(days=40),
        kind=JournalKind.NODE_ENROLLED,
        node=node,
        source="agent",
        text=f"Node {node.name} was enrolled.",
    )


def _special(made: Seeded, now: datetime, samples: list[Sample]) -> None:
    """The unusual: a failed and a missing card, a divided card, a dead BMC, a silent exporter, running jobs."""
    failed, missing = made.cards[1], made.cards[2]
    Card.objects.filter(pk=failed.pk).update(state="failed", state_since=now - timedelta(hours=2))
    Card.objects.filter(pk=missing.pk).update(state="missing", state_since=now - timedelta(hours=3))
    JournalEntry.objects.create(
        at=now - timedelta(hours=2),
        kind=JournalKind.CARD_FAILED,
        node=failed.node,
        card=failed,
        source="agent",
        text=f"Card {failed.slot} on {failed.node} stopped answering: lost from the bus.",
    )
    JournalEntry.objects.create(
        at=now - timedelta(minutes=35),
        kind=JournalKind.CARD_MOVED,
        node=made.cards[0].node,
        card=made.cards[0],
        source="agent",
        text=f"Card {made.cards[0].uuid} moved from SXM4 to SXM1.",
    )
    divided = made.cards[-1]
    Card.objects.filter(pk=divided.pk).update(mig_enabled=True)
    for number, (profile, grant, load) in enumerate(
        (("3g.40gb", 40, 80.0), ("2g.20gb", 20, 5.5), ("1g.10gb", 10, None))
    ):
        piece = Slice.objects.create(
            card=divided,
            uuid=f"MIG-{uuid4()}",
            profile=profile,
            instance_id=str(number + 1),
            memory_total=grant * GIB,
            opened_at=now - timedelta(days=2),
        )
        piece.refresh_from_db()
        made.slices.append(piece)
        if load is not None:
            reading = CardValues(sm_activity=load, memory_used=int(grant * GIB * load / 100))
            samples.append(Sample(piece.series, now, "agent", 60, reading))
    first = made.cards[0]
    ProcessBinding.objects.create(
        node=first.node,
        card=first,
        pid=4711,
        name="python3 train.py",
        user="mira",
        memory_used=60 * GIB,
        slurm_job_id="90210",
        first_seen_at=now - timedelta(hours=5),
        seen_at=now,
    )
    for place in range(1, 7):
        JournalEntry.objects.create(
            at=now - timedelta(days=40, seconds=place),
            kind=JournalKind.CARD_APPEARED,
            node=failed.node,
            card=made.cards[place],
            source="agent",
            text=f"Card {made.cards[place].slot} appeared on {failed.node}.",
        )
    bmc = made.bmcs["r01-gpu01"]
    Bmc.objects.filter(pk=bmc.pk).update(
        failing_since=now - timedelta(minutes=12),
        error_kind="timeout",
        error_detail="no answer within 10 s",
        succeeded_at=now - timedelta(minutes=12),
    )
    partial = made.bmcs.get("a01-gpu02", made.bmcs["a02-gpu01"])
    Bmc.objects.filter(pk=partial.pk).update(
        failures=[{"what": "/redfish/v1/Systems/1/Processors/GPU4", "kind": "protocol", "detail": "HTTP 500"}]
    )
    made.exporter = Exporter.objects.create(
        node=made.nodes["e01-gpu01"],
        site=made.sites["Edge"],
        url="http://10.9.0.7:9400/metrics",
        flavour="dcgm",
        interval=30,
        attempted_at=now,
        succeeded_at=now - timedelta(hours=1),
        failing_since=now - timedelta(hours=1),
        error_kind="unreachable",
        error_detail="connection refused",
        simulated=True,
    )


def one_more(card: Card, load: float, *, at: datetime | None = None) -> None:
    """A new sample of a card."""
    write_samples([Sample(card.series, at or timezone.now(), "agent", 60, values(load))])


def missing_id() -> UUID:
    """An identifier of nothing."""
    return uuid4()


def build_tree() -> list[Card]:
    """The smallest tree: one site, one node, two cards without a sample."""
    now = timezone.now().replace(microsecond=0)
    site = Site.objects.create(name="Only")
    node = Node.objects.create(site=site, name="n1", state="active")
    cards = []
    for number in (1, 2):
        card = Card.objects.create(
            node=node, uuid=f"GPU-{uuid4()}", slot=f"SXM{number}", first_seen_at=now, state_since=now
        )
        card.refresh_from_db()
        cards.append(card)
    return cards
