"""Numbers agree at every level and with the rows that they link to; unknown is never zero (I1, U4, U5, U7)."""

import itertools
import re
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from inventory.models import Card, Exporter, JournalEntry, Node, Slice
from inventory.rules.counts import count
from inventory.selectors.cards import card_rows
from inventory.selectors.tree import site_tree
from sensaka.cockpit import heat
from sensaka.cockpit.lines import grouped
from sensaka.live import attention, snapshots
from sensaka.live.branches import branches
from sensaka.live.fleet import fleet
from sensaka.live.paths import parse
from sensaka.live.topics import Topic
from tests.sensaka.pages import seed

COUNTED = ("installed", "available", "busy", "idle", "unknown", "failed", "missing")


@pytest.fixture
def seeded(db: None) -> seed.Seeded:
    snapshots.forget()
    return seed.build()


@pytest.fixture
def operator(seeded: seed.Seeded, client: Client) -> Client:
    client.force_login(seeded.users["operator"])
    return client


def number(cells: dict[str, object], key: str) -> int:
    return int(cells[key].text.replace(",", ""))  # type: ignore[attr-defined]


def test_the_levels_add_up(seeded: seed.Seeded) -> None:
    """I1: sites and models each add up to the whole."""
    cells = dict(snapshots.snapshot(Topic("fleet")))
    for name in COUNTED:
        whole = number(cells, f"all.{name}")
        for level in ("site", "model"):
            parts = [key for key in cells if key.startswith(f"{level}.") and key.endswith(f".{name}")]
            assert sum(number(cells, key) for key in parts) == whole, (level, name)
    assert number(cells, "all.available") == sum(number(cells, f"all.{part}") for part in ("busy", "idle", "unknown"))
    assert number(cells, "all.installed") == 56
    assert number(cells, "all.failed") == number(cells, "all.missing") == 1
    assert number(cells, "all.unknown") == 3


@pytest.mark.parametrize("kind", ["busy", "idle", "unknown", "failed", "missing", "available", ""])
def test_a_number_links_to_its_rows(seeded: seed.Seeded, operator: Client, kind: str) -> None:
    cells = dict(snapshots.snapshot(Topic("fleet")))
    page = operator.get(reverse("cards"), {"kind": kind} if kind else {})
    shown = page.context["page"].paginator.count
    assert shown == number(cells, f"all.{kind or 'installed'}")


def test_tree_parts_add_up_to_their_parent(seeded: seed.Seeded, operator: Client) -> None:
    """I1: site, cluster, rack, node: each level's cards are the sum of the level below."""
    node = seeded.nodes["a01-gpu01"]
    paths = [
        "",
        f"{node.site_id}",
        f"{node.site_id}/{node.cluster_id}",
        f"{node.site_id}/{node.cluster_id}/{node.rack_id}",
    ]
    sums = []
    for path in paths:
        branches = operator.get(reverse("tree-part"), {"path": path}).context["branches"]
        sums.append(branches)
    assert sum(branch.numbers.installed for branch in sums[0]) == 56
    for above, below in itertools.pairwise(sums):
        parent = next(branch for branch in above if str(branch.path).split("/")[-1] in str(below[0].path))
        for name in ("installed", "busy", "idle", "unknown"):
            assert sum(getattr(branch.numbers, name) for branch in below) == getattr(parent.numbers, name)


def test_an_open_branch_is_told_of_what_comes_and_goes_below(seeded: seed.Seeded, operator: Client) -> None:
    """I1, U6: the page's version of a branch changes with its lines and cards, not with their numbers."""
    node = seeded.nodes["a01-gpu01"]
    rack = f"{node.site_id}/{node.cluster_id}/{node.rack_id}"
    path = parse(rack)
    assert path is not None

    def versions() -> tuple[str, str]:
        snapshots.forget()
        cells = snapshots.snapshot(Topic("branches", path=path))
        return cells[f"below.{rack}"].text, cells[f"below.{rack}/{node.pk}"].text

    before = versions()
    page = operator.get(reverse("tree-part"), {"path": rack}).content.decode()
    assert f'data-live-refresh="below.{rack}" data-version="{before[0]}"' in page
    assert (
        f'data-version="{before[1]}"'
        in operator.get(reverse("tree-part"), {"path": f"{rack}/{node.pk}"}).content.decode()
    )
    seed.one_more(seeded.cards[0], 3.0)
    assert versions() == before
    Card.objects.filter(pk=seeded.cards[0].pk).update(slot="SXM99")
    renamed = versions()
    assert (renamed[0], renamed[1] != before[1]) == (before[0], True)
    Node.objects.create(name="a01-new", site=node.site, cluster=node.cluster, rack=node.rack, state="active")
    grown = versions()
    assert grown[0] != before[0]
    Node.objects.filter(name="a01-new").update(state="retired")
    assert versions()[0] == before[0]


def test_unknown_is_null_in_the_map_and_never_zero(seeded: seed.Seeded, operator: Client) -> None:
    """U4, U5: a card without a fresh sample has no value; an idle one has zero."""
    body = operator.get(reverse("map-data"), {"measure": "activity", "layout": "1"}).json()
    kinds = [body["kinds"][kind] for kind in body["kind"]]
    assert len(body["layout"]["cards"]) == len(body["values"]) == len(kinds) == 56
    for kind, value in zip(kinds, body["values"], strict=True):
        if kind == "unknown":
            assert value is None
        if kind == "idle":
            assert value == 0
    assert kinds.count("unknown") == 3


def test_a_slice_is_measured_against_its_own_grant_and_power_is_counted_once(
    seeded: seed.Seeded, operator: Client
) -> None:
    """U7: memory of the grant; no power of a slice; the fleet's power is that of its nodes."""
    divided = seeded.cards[-1]
    cells = dict(snapshots.snapshot(Topic("card", divided.pk)))
    big = seeded.slices[0]
    assert cells[f"slice.{big.pk}.memory"].text == "32.0 of 40\u202fGiB"
    assert cells[f"slice.{big.pk}.sm_activity"].text == "80\u202f%"
    assert cells[f"slice.{seeded.slices[2].pk}.sm_activity"].state == "unknown"
    assert not any(key.startswith("slice.") and key.endswith(".power") for key in cells)
    whole = dict(snapshots.snapshot(Topic("fleet")))
    assert whole["power.now"].text == "25.6\u202fkW"  # eight nodes of 3,200 W, cards inside them not added
    assert Slice.objects.count() == 3


def test_the_map_holds_every_measure(seeded: seed.Seeded, operator: Client) -> None:
    for measure in heat.HEAT:
        body = operator.get(reverse("map-data"), {"measure": measure}).json()
        assert body["measure"] == measure
        assert len(body["kind"]) == 56
    assert operator.get(reverse("map-data"), {"measure": "nonsense"}).json()["measure"] == "state"
    assert len(operator.get(reverse("map-data"), {"site": str(seeded.sites["Edge"].pk)}).json()["kind"]) == 8


def test_history_has_gaps_and_whole_seconds(seeded: seed.Seeded, operator: Client) -> None:
    """U1, U4: from one hour to two years; a gap is null and unknown, and the parts add up to the bucket."""
    gapped = next(card for card in seeded.cards if card.slot == "SXM7")
    for span in ("1h", "6h", "24h", "7d", "30d", "1y", "2y"):
        body = operator.get(reverse("card-history", args=[gapped.pk]), {"span": span}).json()
        band = body["band"]
        total = sum(sum(band[part]) for part in ("busy", "idle", "unknown"))
        assert abs(total - (body["end"] - body["times"][0])) <= body["resolution"], span
    hour = operator.get(reverse("card-history", args=[gapped.pk]), {"span": "1h"}).json()
    assert None in hour["fields"]["utilization"]["mean"]
    assert sum(hour["band"]["unknown"]) > 900
    assert hour["source"] == "raw"


def test_lists_sort_and_put_unknown_last(seeded: seed.Seeded, operator: Client) -> None:
    page = operator.get(reverse("cards"), {"sort": "-activity"}).context["page"]
    values = [card.activity for card in page.object_list]
    known = [value for value in values if value is not None]
    assert known == sorted(known, reverse=True)
    assert values[len(known) :] == [None] * (len(values) - len(known))
    assert fleet().cards  # the same snapshot served the page


def test_search_finds_by_name_uuid_and_serial(seeded: seed.Seeded, operator: Client) -> None:
    card = seeded.cards[0]
    for query, found in (
        ("a01-gpu01", "a01-gpu01"),
        (card.uuid[-12:], card.uuid),
        (card.serial, card.uuid),
        ("10.0.0.1", "BMC of"),
    ):
        page = operator.get(reverse("search"), {"q": query}).content.decode()
        assert found in page, query
    assert "Nothing matches" in operator.get(reverse("search"), {"q": "zzz-none"}).content.decode()


def test_every_live_cell_on_a_page_is_in_its_snapshot(seeded: seed.Seeded, operator: Client) -> None:
    """U6: what the first paint shows is what the live messages carry."""
    node, card = seeded.nodes["a01-gpu01"], seeded.cards[0]
    pages = {
        reverse("overview"): Topic("fleet"),
        reverse("node", args=[node.pk]): Topic("node", node.pk),
        reverse("card", args=[card.pk]): Topic("card", card.pk),
        reverse("collectors"): Topic("collectors"),
    }
    for address, topic in pages.items():
        html = operator.get(address).content.decode()
        assert f'data-topic="{topic}"' in html
        wanted = set(re.findall(r'data-live(?:-fill|-refresh)?="([^"]+)"', html))
        assert len(wanted) > 5
        assert wanted <= set(snapshots.snapshot(topic)), address


def test_a_card_in_conflict_is_available_nowhere(seeded: seed.Seeded, operator: Client) -> None:
    """I1: one rule: the page, the list, the map, the tree and the inventory's own counts say the same."""
    before = count(row.facts for row in card_rows())
    card = next(row for row in fleet().cards if row.kind == "busy")
    Card.objects.filter(pk=card.id).update(conflict="Two sources give it different serials.")
    snapshots.forget()
    cells = dict(snapshots.snapshot(Topic("fleet")))
    after = count(row.facts for row in card_rows())
    assert (after.available, after.busy, after.out) == (before.available - 1, before.busy - 1, before.out + 1)
    for name in (*COUNTED, "out"):
        assert number(cells, f"all.{name}") == getattr(after, name)
        tree = dict(snapshots.snapshot(Topic("branches")))
        if name in ("installed", "busy", "idle", "unknown", "out"):
            parts = [number(tree, key) for key in tree if key.endswith(f".{name}")]
            assert sum(parts) == getattr(after, name)
    assert fleet().by_id[card.id].available is False
    rows = operator.get(reverse("cards"), {"kind": "available"}).context["page"].paginator
    assert str(card.id) not in {str(row.id) for page in rows for row in page}
    body = operator.get(reverse("map-data"), {"measure": "state", "layout": "1"}).json()
    place = body["layout"]["cards"].index(str(card.id))
    assert body["kinds"][body["kind"][place]] == "out"


def test_the_tree_is_the_inventorys(seeded: seed.Seeded) -> None:
    """I1: sites and racks count as in the inventory's own tree."""
    for site in site_tree().sites:
        mine = next(branch for branch in branches(()) if branch.path == str(site.site.pk))
        assert mine.numbers == site.counts
        racks = {rack.rack.pk if rack.rack else None: rack.counts for rack in site.racks}
        for cluster in branches((site.site.pk,)):
            path = parse(cluster.path)
            assert path is not None
            for rack in branches(path):
                key = parse(rack.path)
                assert key is not None
                assert rack.numbers == racks[key[-1]]


def test_a_source_that_never_answered_is_named_by_its_place(seeded: seed.Seeded) -> None:
    """I5: a URL alone says nothing to whoever has to go there."""
    exporter = seeded.exporter
    assert exporter is not None
    texts = [item.text for item in attention.items()]
    assert any(f"{exporter.url} on e01-gpu01" in text for text in texts)
    Exporter.objects.filter(pk=exporter.pk).update(node=None, rack=seeded.nodes["e01-gpu01"].rack)
    snapshots.forget()
    assert any(f"{exporter.url} in E01, Edge" in item.text for item in attention.items())


def test_where_nothing_is_read_nobody_says_that_every_source_answers(db: None, client: Client) -> None:
    snapshots.forget()
    client.force_login(seed.people()["operator"])
    page = client.get(reverse("attention-list")).content.decode()
    assert "every source answers" not in page
    assert "Nothing is read yet" in page
    assert reverse("enrol") in page


def test_the_journal_groups_what_happened_at_once(seeded: seed.Seeded) -> None:
    node = seeded.nodes["a01-gpu01"]
    now = timezone.now()
    JournalEntry.objects.filter(node=node).delete()
    JournalEntry.objects.create(at=now - timedelta(hours=1), kind="note", node=node, source="user", text="Before")
    for number_of in range(8):
        JournalEntry.objects.create(
            at=now + timedelta(seconds=number_of),
            kind="card_appeared",
            node=node,
            source="agent",
            text=f"Card {number_of}",
        )
    lines = grouped(JournalEntry.objects.filter(node=node).order_by("-at"))
    assert (lines[0][0].text, len(lines[0][1])) == ("Card 7", 7)
    assert [(line.text, rest) for line, rest in lines[1:]] == [("Before", [])]
