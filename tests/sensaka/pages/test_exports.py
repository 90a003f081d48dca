"""Tables as CSV files: the rows of the filter in the page's order, streamed, for those who may see the page."""

import csv
import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient, Client
from django.urls import reverse
from django.utils import timezone

from inventory.models import Card, JournalEntry, Node
from sensaka.cockpit import csv_files
from sensaka.cockpit.views import exports
from sensaka.live import snapshots
from tests.sensaka.pages import seed

NAMES = ("nodes-csv", "cards-csv", "collectors-csv", "journal-csv")
Load = Callable[..., list[dict[str, str]]]


@pytest.fixture
def seeded(db: None) -> seed.Seeded:
    snapshots.forget()
    return seed.build()


def pieces(client: AsyncClient, name: str, **query: str) -> list[bytes]:
    """What the server sent, piece by piece, as the ASGI server that runs the product gets it."""

    @async_to_sync
    async def loaded() -> list[bytes]:
        answer: Any = await client.get(reverse(name), query)
        assert answer.status_code == 200
        assert answer["Content-Type"] == "text/csv; charset=utf-8"
        assert answer["Content-Disposition"].startswith(f'attachment; filename="sensaka-{name.removesuffix("-csv")}-')
        return [piece async for piece in answer.streaming_content]

    return loaded()


@pytest.fixture
def load(seeded: seed.Seeded) -> Load:
    client = AsyncClient()
    client.force_login(seeded.users["auditor"])

    def rows(name: str, **query: str) -> list[dict[str, str]]:
        text = b"".join(pieces(client, name, **query)).decode()
        return list(csv.DictReader(io.StringIO(text, newline="")))

    return rows


def test_the_file_holds_the_rows_of_the_page_in_its_order(seeded: seed.Seeded, load: Load, client: Client) -> None:
    client.force_login(seeded.users["auditor"])
    asked = {"kind": "idle", "sort": "-power", "page": "7"}
    shown = client.get(reverse("cards"), {**asked, "page": "1"}).context["page"].object_list
    assert [row["id"] for row in load("cards-csv", **asked)] == [str(card.id) for card in shown]
    assert len(load("cards-csv")) == 56
    site = str(seeded.sites["Regional"].pk)
    assert {row["site"] for row in load("nodes-csv", site=site, sort="-name")} == {"Regional"}
    names = [row["name"] for row in load("nodes-csv", site=site, sort="-name")]
    assert names == ["r01-gpu02", "r01-gpu01"]
    assert [row["result"] for row in load("collectors-csv", result="failing")] == ["failing", "failing"]
    assert {row["kind"] for row in load("journal-csv", kind="card_moved")} == {"card_moved"}


def test_values_are_bare_and_what_is_not_known_is_empty(seeded: seed.Seeded, load: Load) -> None:
    """Numbers in the unit of their heading, times in UTC; a stale reading is not passed off as a present one."""
    card = seeded.cards[0]
    row = next(row for row in load("cards-csv") if row["id"] == str(card.pk))
    assert (row["node"], row["slot"], row["uuid"]) == ("a01-gpu01", "SXM1", card.uuid)
    assert float(row["activity_percent"]) == pytest.approx(57, abs=2)
    assert row["memory_total_bytes"] == str(80 * seed.GIB)
    assert datetime.strptime(row["read_at"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC) <= timezone.now()
    unknown = load("cards-csv", kind="unknown")[0]
    assert unknown["read_at"]
    assert unknown["activity_percent"] == unknown["power_watts"] == unknown["temperature_celsius"] == ""


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("+1", "'+1"),
        ("-rack", "'-rack"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("  =1+1", "'  =1+1"),
        ("\t=1", "'\t=1"),
        ("a=b", "a=b"),
        ("", ""),
        (-5, -5),
        (-0.12345, -0.123),
        (None, ""),
        (True, "yes"),
        (datetime(2026, 3, 1, 12, tzinfo=UTC), "2026-03-01T12:00:00Z"),
    ],
)
def test_text_is_no_formula_and_numbers_stay_numbers(value: csv_files.Value, cell: object) -> None:
    assert csv_files.written(value) == cell


def test_what_a_machine_calls_itself_is_not_run_by_a_spreadsheet(seeded: seed.Seeded, load: Load) -> None:
    Node.objects.filter(pk=seeded.nodes["a01-gpu01"].pk).update(name='=cmd|"/C calc"!A0')
    Card.objects.filter(pk=seeded.cards[0].pk).update(serial="@evil")
    snapshots.forget()
    assert '\'=cmd|"/C calc"!A0' in {row["name"] for row in load("nodes-csv")}
    row = next(row for row in load("cards-csv") if row["id"] == str(seeded.cards[0].pk))
    assert (row["node"][:5], row["serial"]) == ("'=cmd", "'@evil")


def test_a_long_journal_comes_in_pieces_without_gap_or_double(
    seeded: seed.Seeded, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streamed by keyset: entries of one moment are neither lost nor sent twice."""
    monkeypatch.setattr(exports, "_ENTRIES", 7)
    monkeypatch.setattr(csv_files, "CHUNK", 5)
    at = timezone.now() - timedelta(days=400)
    JournalEntry.objects.bulk_create(
        JournalEntry(at=at, kind="settings_changed", text=f"entry {number}") for number in range(40)
    )
    wanted = [str(key) for key in JournalEntry.objects.values_list("id", flat=True)]
    assert [row["id"] for row in load("journal-csv")] == wanted
    client = AsyncClient()
    client.force_login(seeded.users["auditor"])
    assert len(pieces(client, "journal-csv")) == 1 + -(-len(wanted) // 5)


@pytest.mark.parametrize("name", NAMES)
def test_a_member_gets_no_file(seeded: seed.Seeded, client: Client, name: str) -> None:
    client.force_login(seeded.users["member"])
    answer = client.get(reverse(name))
    assert answer.status_code == 403
    assert b"for operators and auditors" in answer.content


@pytest.mark.parametrize(("page", "name"), zip(("nodes", "cards", "collectors", "journal"), NAMES, strict=True))
def test_the_page_links_to_the_file_of_what_it_shows(seeded: seed.Seeded, client: Client, page: str, name: str) -> None:
    client.force_login(seeded.users["auditor"])
    text = client.get(reverse(page), {"q": "gpu", "page": "1"}).content.decode()
    assert f'href="{reverse(name)}?q=gpu"' in text
