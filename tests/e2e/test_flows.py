"""What people do: sign in, drill down, watch it live, add a source, find a card; a killed server (I1, U5, U6, X3)."""

import csv
import json
import re
import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.conftest import Stack, watched
from tests.sensaka.pages.seed import PASSWORD

# one worker: Playwright's loop and the database of these tests live once
pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture
def page(stack: Stack, browser: Browser, sessions: dict[str, Any]) -> Iterator[Page]:
    context = browser.new_context(storage_state=sessions["operator"], viewport={"width": 1280, "height": 900})
    context.set_default_timeout(15_000)
    yield watched(context).page
    context.close()


def post_samples(stack: Stack, load: float, at: datetime | None = None) -> None:
    """One post of the agent, through its own door."""
    moment = (at or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
    samples = [
        {
            "card": card,
            "sampled_at": moment,
            "utilization": load,
            "sm_activity": load,
            "temperature": 66.0,
            "power": 333.0,
        }
        for card in stack.ids["fed_uuids"]
    ]
    request = urllib.request.Request(
        f"{stack.address}/api/v1/telemetry/",
        data=json.dumps({"interval": 10, "samples": samples}).encode(),
        headers={"Authorization": f"Token {stack.ids['token']}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        assert json.load(answer)["stored"] == len(samples)


def test_sign_in_refuses_and_accepts(stack: Stack, browser: Browser) -> None:
    """X3."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{stack.address}/fleet/cards/?kind=idle")
    assert "/sign-in/" in page.url
    page.fill("#id_username", "auditor")
    page.fill("#id_password", "wrong")
    page.click("button[type=submit]")
    expect(page.get_by_role("alert")).to_be_visible()
    assert page.input_value("#id_username") == "auditor"
    page.fill("#id_password", PASSWORD)
    page.click("button[type=submit]")
    page.wait_for_url(re.compile(r"/fleet/cards/\?kind=idle$"))
    expect(page.get_by_role("heading", name="Cards", exact=True)).to_be_visible()
    context.close()


def test_from_the_overview_down_to_a_card(stack: Stack, page: Page) -> None:
    """I1: a number leads to its rows, a row to the node, the node to the card, and back up."""
    page.goto(stack.address)
    number = page.locator('a[data-live="all.idle"]')
    idle = int(number.inner_text())
    number.click()
    page.wait_for_url(re.compile("kind=idle"))
    expect(page.locator("tbody tr")).to_have_count(idle)
    page.locator("tbody tr").first.get_by_role("link").nth(1).click()
    page.wait_for_url(re.compile("/fleet/nodes/"))
    page.locator("#part-cards tbody a").first.click()
    page.wait_for_url(re.compile("/fleet/cards/"))
    page.locator("[data-charts][data-ready]").wait_for()
    assert page.locator(".chart canvas").count() >= 5
    page.get_by_role("button", name="24 h").click()
    page.locator('[data-charts][data-ready="24h"]').wait_for()
    page.locator(".breadcrumb a").last.click()
    page.wait_for_url(re.compile("/fleet/nodes/"))


def test_new_samples_appear_within_three_seconds(stack: Stack, page: Page) -> None:
    """U6: posted at the agent's door, seen on the node's page without a reload."""
    post_samples(stack, 12.0)
    page.goto(f"{stack.address}/fleet/nodes/{stack.ids['fed_node']}/")
    page.locator("#link-state[data-state=live]").wait_for()
    cell = page.locator(f'[data-live="card.{stack.ids["fed_cards"][0]}.activity"]')
    expect(cell).to_have_text(re.compile("^12"))
    time.sleep(1.1)  # samples are kept by whole seconds: the next one needs a second of its own
    post_samples(stack, 91.0)
    began = time.monotonic()
    expect(cell).to_have_text(re.compile("^91"), timeout=10_000)
    assert time.monotonic() - began < 3
    expect(cell).to_have_class(re.compile("glow"))


def test_a_killed_server_is_shown_and_overcome(stack: Stack, page: Page) -> None:
    """U6: the dot says that the link is gone, and since when; the page recovers by itself."""
    page.goto(f"{stack.address}/fleet/nodes/{stack.ids['fed_node']}/")
    page.locator("#link-state[data-state=live]").wait_for()
    stack.kill()
    page.locator("#link-state[data-state=connecting], #link-state[data-state=down]").wait_for()
    stack.start()
    page.locator("#link-state[data-state=live]").wait_for(timeout=30_000)
    post_samples(stack, 47.0)
    cell = page.locator(f'[data-live="card.{stack.ids["fed_cards"][0]}.activity"]')
    expect(cell).to_have_text(re.compile("^47"), timeout=10_000)


def test_a_refused_form_keeps_what_was_typed(stack: Stack, page: Page) -> None:
    """I3."""
    page.goto(f"{stack.address}/collectors/add/bmc/")
    expect(page.locator("#id_tls_authority")).to_be_hidden()
    page.fill("#id_addresses", "10.0.0.300")
    page.select_option("#id_credential", "new")
    page.fill("#id_new_name", "rack A")
    page.fill("#id_new_username", "root")
    page.fill("#id_new_password", "pw")
    page.select_option("#id_site", label="Central")
    page.fill("#id_interval", "45")
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator("#id_addresses_error")).to_be_visible()
    assert page.input_value("#id_addresses") == "10.0.0.300"
    assert page.input_value("#id_new_name") == "rack A"
    assert page.input_value("#id_interval") == "45"
    expect(page.locator("#id_new_name")).to_be_visible()


def test_the_map_by_keyboard(stack: Stack, page: Page) -> None:
    """U5: arrows move, the hint names the card, space selects, Enter opens."""
    page.goto(f"{stack.address}/fleet/map/")
    page.locator("[data-heatmap][data-ready]").wait_for()
    page.locator("canvas").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".heatmap-tip")).to_contain_text("SXM2 on a01-gpu01")
    page.keyboard.press("Space")
    expect(page.locator("[data-heatmap-selection]")).to_contain_text("1 selected")
    page.keyboard.press("+")
    page.keyboard.press("0")
    page.select_option("#measure", "power")
    expect(page.locator("[data-heatmap-legend]")).to_contain_text("Power")
    page.keyboard.press("Tab")
    page.locator("canvas").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/fleet/cards/[0-9a-f-]{36}/$"))


def test_the_palette_finds_a_node(stack: Stack, page: Page) -> None:
    page.goto(stack.address)
    page.locator("#link-state[data-state=live]").wait_for()
    page.keyboard.press("Control+k")
    page.locator("#palette input").fill("r01-gpu02")
    expect(page.locator("#palette-results")).to_contain_text("r01-gpu02")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/fleet/nodes/"))
    expect(page.get_by_role("heading", name="r01-gpu02")).to_be_visible()


def test_the_theme_is_remembered(stack: Stack, page: Page) -> None:
    page.goto(stack.address)
    before = page.locator("html").get_attribute("data-bs-theme")
    page.locator("[data-theme-switch]").click()
    after = page.locator("html").get_attribute("data-bs-theme")
    assert {before, after} == {"light", "dark"}
    page.reload()
    assert page.locator("html").get_attribute("data-bs-theme") == after


def test_a_table_by_keyboard(stack: Stack, page: Page) -> None:
    """UI.md: Tab goes through links, not through every number; arrows reach the numbers and say what they mean."""
    page.goto(f"{stack.address}/fleet/cards/")
    page.locator("#link-state[data-state=live]").wait_for()
    first = page.locator("tbody tr").first
    first.get_by_role("link").first.focus()
    page.keyboard.press("Tab")
    expect(first.get_by_role("link").nth(1)).to_be_focused()
    page.keyboard.press("Tab")
    second = page.locator("tbody tr").nth(1)
    expect(second.get_by_role("link").first).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(second.locator("td[data-column=kind] .cell")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.locator("#hint")).to_be_visible()
    page.keyboard.press("ArrowUp")
    expect(first.locator("td[data-column=activity] .cell")).to_be_focused()


def test_lists_fit_on_paper(stack: Stack, page: Page) -> None:
    """UI.md, access: A4 upright with ordinary margins; no table is wider than its card."""
    page.set_viewport_size({"width": 718, "height": 1000})
    page.emulate_media(media="print")
    for address in ("/", "/fleet/nodes/", "/fleet/cards/", f"/fleet/nodes/{stack.ids['node']}/", "/collectors/"):
        page.goto(stack.address + address)
        wide = page.locator("table").evaluate_all(
            "tables => tables.map(table => table.scrollWidth - table.closest('.card').clientWidth)"
        )
        assert max(wide) <= 1, (address, wide)


def test_columns_are_chosen_and_remembered(stack: Stack, page: Page) -> None:
    """UI.md: by keyboard, kept after a reload and a new filter, and undone."""
    page.goto(f"{stack.address}/fleet/cards/")
    heading = page.locator("thead th", has_text="Temperature")
    expect(heading).to_be_visible()
    page.get_by_role("button", name="Columns").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Temperature").focus()
    page.keyboard.press("Space")
    expect(heading).to_be_hidden()
    page.reload()
    expect(page.locator("thead th", has_text="Activity")).to_be_visible()
    expect(heading).to_be_hidden()
    page.select_option("#kind", "idle")
    page.wait_for_url(re.compile("kind=idle"))
    expect(page.locator("tbody td[data-column=temperature]").first).to_be_hidden()
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("button", name="Show all").click()
    expect(heading).to_be_visible()


def test_a_table_is_saved_as_a_file(stack: Stack, page: Page) -> None:
    """UI.md: what the filter leaves, in the order that is shown, through the server that runs the product."""
    page.goto(f"{stack.address}/fleet/cards/?sort=-power")
    page.select_option("#kind", "idle")
    page.wait_for_url(re.compile("kind=idle"))
    shown = page.locator("tbody th").count()
    with page.expect_download() as started:
        page.get_by_role("link", name="CSV").click()
    saved = started.value
    assert re.fullmatch(r"sensaka-cards-\d{8}T\d{6}Z\.csv", saved.suggested_filename)
    with saved.path().open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == shown
    assert {row["state"] for row in rows} == {"idle"}


def enrol(stack: Stack, page: Page, hostname: str) -> str:
    """A node that enrols through the agent's door with a token of the form; returns its node token."""
    page.goto(f"{stack.address}/collectors/add/agent/")
    page.fill("#id_name", hostname)
    page.select_option("#id_site", label="Regional")
    page.get_by_role("button", name=re.compile("token", re.IGNORECASE)).click()
    body = {"token": page.locator("#token").inner_text(), "hostname": hostname, "machine_id": hostname}
    request = urllib.request.Request(
        f"{stack.address}/api/v1/agents/enrol/", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        token: str = json.load(answer)["token"]
    return token


def open_line(page: Page, name: str) -> None:
    line = page.locator("summary", has=page.get_by_text(name, exact=True)).first
    with page.expect_response(lambda answer: "/fleet/tree/part/" in answer.url):
        line.click(position={"x": 8, "y": 12})


def test_a_new_node_appears_in_the_open_tree(stack: Stack, browser: Browser, page: Page) -> None:
    """I1, U6: below an open branch, within seconds and without a reload; what is open stays open."""
    enrol(stack, page, "edge-new-1")
    page.goto(f"{stack.address}/fleet/tree/")
    page.locator("#link-state[data-state=live]").wait_for()
    for name in ("Regional", "Without a cluster", "Without a rack"):
        open_line(page, name)
    first = page.locator("[data-line]", has_text="edge-new-1").last
    expect(first).to_be_visible()
    open_line(page, "edge-new-1")
    expect(first).to_contain_text("No cards on this node")
    page.mouse.move(5, 5)
    other = page.context.new_page()
    enrol(stack, other, "edge-new-2")
    other.close()
    expect(page.locator("summary", has_text="edge-new-2")).to_be_visible(timeout=8_000)
    expect(first).to_contain_text("No cards on this node")
    open_line(page, "edge-new-2")


def test_signing_out_ends_the_live_pages_of_every_tab(stack: Stack, browser: Browser) -> None:
    """X3, U6: what another tab shows greys at once and the way back leads to the same page."""
    context = browser.new_context()
    page, other = context.new_page(), context.new_page()
    page.goto(f"{stack.address}/sign-in/")
    page.fill("#id_username", "auditor")
    page.fill("#id_password", PASSWORD)
    page.click("button[type=submit]")
    page.wait_for_url(f"{stack.address}/")
    other.goto(f"{stack.address}/fleet/cards/?kind=idle")
    other.locator("#link-state[data-state=live]").wait_for()
    page.locator(".user-menu").click()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(re.compile("/sign-in/"))
    expect(other.locator("#link-state")).to_contain_text("Signed out", timeout=3_000)
    expect(other.locator("body")).to_have_class(re.compile("is-stale"))
    other.wait_for_timeout(2_500)  # the one more try of the line is refused as well
    expect(other.locator("#link-state")).to_contain_text("Signed out")
    other.get_by_role("link", name="Sign in again").click()
    other.fill("#id_username", "auditor")
    other.fill("#id_password", PASSWORD)
    other.click("button[type=submit]")
    other.wait_for_url(re.compile(r"/fleet/cards/\?kind=idle$"))
    context.close()
