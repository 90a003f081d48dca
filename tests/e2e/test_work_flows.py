"""What people do with jobs and cordons in the browser: filter, follow, look back in time, take a node out (I7, P13)."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.conftest import DATABASE, Stack, Watched, watched
from tests.e2e.test_screens import AXE_RULES, assets, look
from tests.services import LAYOUT

# one worker: Playwright's loop and the database of these tests live once
pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture
def seen(stack: Stack, browser: Browser, sessions: dict[str, Any]) -> Iterator[Watched]:
    context = browser.new_context(storage_state=sessions["operator"], viewport={"width": 1280, "height": 900})
    context.set_default_timeout(15_000)
    yield watched(context)
    context.close()


@pytest.fixture
def page(seen: Watched) -> Page:
    return seen.page


def change(statement: str, *values: Any) -> None:
    """A change in the database that nobody announces: the page's own rereading has to find it."""
    with psycopg.connect(host=str(LAYOUT.postgres_socket), user="sensaka", dbname=DATABASE) as connection:
        connection.execute(statement, values)


def test_jobs_are_filtered_and_the_address_can_be_sent_on(stack: Stack, page: Page) -> None:
    page.goto(f"{stack.address}/jobs/")
    page.select_option("#state", "waiting")
    page.wait_for_url(re.compile("state=waiting"))
    expect(page.locator(".jobs-list tbody tr")).to_have_count(4)
    page.fill("#q", "sweep")
    expect(page.locator(".jobs-list tbody tr")).to_have_count(1)
    page.wait_for_url(re.compile("q=sweep"))
    page.goto(page.url)
    expect(page.locator(".jobs-list tbody tr")).to_contain_text("90220_4")
    page.locator(".more-filters summary").click()
    page.fill("#node", "a01-gpu02")
    page.press("#node", "Enter")
    expect(page.get_by_text("No job passes these filters.")).to_be_visible()
    page.get_by_role("link", name="Show all").click()
    page.wait_for_url(re.compile("/jobs/$"))


def test_the_list_of_jobs_follows_what_changes(stack: Stack, page: Page) -> None:
    """U6: a cell changes where it stands; under the pointer no row moves."""
    page.goto(f"{stack.address}/jobs/?state=open")
    page.locator("#link-state[data-state=live]").wait_for()
    cell = page.locator(f'[data-live="job.{stack.ids["job_steered"]}.state"]')
    expect(cell).to_have_text("Running")
    row = page.locator("tr", has=cell)
    row.hover()
    before = row.evaluate("row => [...row.parentElement.children].indexOf(row)")
    change("UPDATE inventory_job SET state = 'suspended' WHERE id = %s", stack.ids["job_steered"])
    expect(cell).to_have_text("Suspended", timeout=15_000)
    assert row.evaluate("row => [...row.parentElement.children].indexOf(row)") == before
    change("UPDATE inventory_job SET state = 'running' WHERE id = %s", stack.ids["job_steered"])


def test_the_timeline_by_keyboard_and_pointer(stack: Stack, seen: Watched) -> None:
    page = seen.page
    page.goto(f"{stack.address}/clusters/{stack.ids['cluster']}/")
    timeline = page.locator("[data-timeline]")
    page.locator('[data-timeline][data-ready="node-24h"]').wait_for()
    expect(page.locator("[data-timeline-note]")).to_contain_text("runs on 4 nodes")
    canvas = timeline.locator("canvas")
    canvas.focus()
    tip = timeline.locator(".timeline-tip")
    expect(tip).to_be_visible()
    first = tip.inner_text()
    page.keyboard.press("ArrowRight")
    expect(tip).not_to_have_text(first)
    page.keyboard.press("ArrowDown")
    expect(tip).to_contain_text("a01-gpu02")
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    page.get_by_role("button", name="Cards", exact=True).click()
    page.locator('[data-timeline][data-ready="card-24h"]').wait_for()
    expect(page.locator("[data-timeline-note]")).to_contain_text("on 32 cards")
    expect(page.locator("[data-timeline-note]")).to_contain_text("cards are unknown are drawn by node only: 1")
    page.get_by_role("button", name="Earlier").click()
    expect(page.get_by_role("button", name="Later")).to_be_enabled()
    page.get_by_role("button", name="Later").click()
    expect(page.get_by_role("button", name="Later")).to_be_disabled()
    page.get_by_role("button", name="Nodes", exact=True).click()
    page.locator('[data-timeline][data-ready="node-24h"]').wait_for()
    canvas.focus()
    expect(tip).to_be_visible()
    job = tip.inner_text().split()[0]
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/jobs/[0-9a-f-]{36}/$"))
    expect(page.locator("h1")).to_contain_text(job)
    assert seen.complaints == []


def test_a_node_is_cordoned_in_a_dialog_and_returned(stack: Stack, seen: Watched) -> None:
    """H6: what runs there, a reason that is needed, what will happen, and how to undo it."""
    page = seen.page
    page.goto(f"{stack.address}/fleet/nodes/{stack.ids['spare_node']}/")
    page.locator("#link-state[data-state=live]").wait_for()
    opener = page.get_by_role("link", name="Cordon", exact=True)
    opener.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name=re.compile("Cordon e01-gpu02"))
    expect(dialog).to_be_visible()
    expect(dialog.get_by_label("Reason")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#act-dialog")).to_be_hidden()
    expect(opener).to_be_focused()
    opener.click()
    expect(dialog).to_contain_text("What will happen")
    dialog.get_by_role("button", name="Cordon").click()
    expect(dialog.locator(".invalid-feedback")).to_be_visible()
    dialog.get_by_label("Reason").fill("smells burnt")
    dialog.get_by_role("button", name="Cordon").click()
    expect(page.get_by_role("status").filter(has_text="is cordoned. To undo it, return it")).to_be_visible(
        timeout=15_000
    )
    expect(page.locator('[data-live="node.cordon"]')).to_have_text("Cordoned")
    expect(page.get_by_text("smells burnt").first).to_be_visible()
    page.get_by_role("link", name="Return to scheduling").click()
    page.get_by_role("dialog").get_by_role("button", name="Return").click()
    expect(page.get_by_role("status").filter(has_text="is returned to scheduling")).to_be_visible(timeout=15_000)
    expect(page.get_by_role("link", name="Cordon", exact=True)).to_be_visible()
    assert seen.complaints == []


def test_a_connection_is_tried_without_losing_what_was_typed(stack: Stack, seen: Watched) -> None:
    page = seen.page
    page.goto(f"{stack.address}/clusters/connect/")
    expect(page.locator("#id_kubeconfig")).to_be_hidden()
    page.fill("#id_address", "http://127.0.0.1:9")
    page.fill("#id_jwt_key", "c2l4dGVlbiBieXRlcyBvciBtb3Jl")
    page.get_by_role("button", name="Test connection").click()
    expect(page.locator("#id_username_error")).to_be_visible()
    assert page.input_value("#id_jwt_key") == "c2l4dGVlbiBieXRlcyBvciBtb3Jl"
    page.fill("#id_username", "root")
    page.get_by_role("button", name="Test connection").click()
    expect(page.get_by_text("It was not reached.")).to_be_visible()
    assert page.input_value("#id_jwt_key") == "c2l4dGVlbiBieXRlcyBvciBtb3Jl"
    page.select_option("#id_way", "kubeconfig")
    expect(page.locator("#id_jwt_key")).to_be_hidden()
    expect(page.locator("#id_kubeconfig")).to_be_visible()
    assert seen.complaints == []


def test_the_palette_finds_a_job_and_a_cluster(stack: Stack, page: Page) -> None:
    page.goto(stack.address)
    page.locator("#link-state[data-state=live]").wait_for()
    page.keyboard.press("Control+k")
    page.locator("#palette input").fill("regional-cluster")
    expect(page.locator("#palette-results")).to_contain_text("cluster at Regional")
    page.locator("#palette input").fill("pretrain-vit")
    expect(page.locator("#palette-results")).to_contain_text("90214 pretrain-vit-l")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/jobs/"))
    page.locator('[data-job-charts][data-ready="1"]').wait_for()
    page.select_option("[data-job-node]", label="a01-gpu02")
    expect(page.locator("[data-chart-note]")).to_contain_text("on a01-gpu02")


def test_the_timeline_of_64_nodes_with_8_cards(stack: Stack, page: Page, shots: Path | None) -> None:
    """512 lanes with 5,000 runs: the picture keeps its height, the axis stays, and a frame is drawn within 50 ms."""
    now = int(time.time())
    kinds = ("busy", "good", "good", "good", "bad", "warn", "off")
    jobs = [
        {"id": str(number), "job": str(70_000 + number), "name": "train", "user": "mira", "account": "vision",
         "state": "Completed", "kind": kinds[number % 7], "cards": 8, "known": True, "over": True}
        for number in range(5000)
    ]  # fmt: skip
    lanes = []
    for lane in range(512):
        begin = (lane // 8) * 911 % 5000
        bars = [[(lane // 8 * 80 + run) % 5000, begin + run * 7600, begin + run * 7600 + 6900, 0] for run in range(10)]
        lanes.append({"id": str(lane), "name": f"a{lane // 8:02d}-gpu01 SXM{lane % 8 + 1}", "rows": 1, "bars": bars})
    body = {"start": now - 86_400, "end": now, "now": now, "by": "card", "truncated": True, "unknown": 3}
    page.route("**/timeline/**", lambda route: route.fulfill(json={**body, "jobs": jobs, "lanes": lanes}))
    page.goto(f"{stack.address}/clusters/{stack.ids['cluster']}/")
    page.locator("[data-timeline][data-ready]").wait_for()
    expect(page.locator("[data-timeline-note]")).to_contain_text("5,000 runs on 512")
    view = page.locator(".timeline-view")
    assert view.evaluate("view => view.offsetHeight") <= 600
    assert view.evaluate("view => view.scrollHeight") > 512 * 12
    spent = view.evaluate(
        """async view => {
          const spent = [];
          for (let turn = 0; turn < 20; turn++) {
            const began = performance.now();
            view.scrollTop = turn * 300;
            await new Promise(requestAnimationFrame);
            view.dispatchEvent(new Event("scroll"));
            spent.push(performance.now() - began);
          }
          return spent.sort((one, other) => one - other)[10];
        }"""
    )
    assert spent < 50, spent
    if shots is not None:
        page.locator(".timeline").screenshot(path=shots / "timeline-512.png")


def test_the_dialog_and_the_trial_are_readable(
    stack: Stack, seen: Watched, shots: Path | None
) -> None:  # fmt: skip
    """Axe clean in both themes, and no wider than a phone."""
    page = seen.page
    page.goto(f"{stack.address}/fleet/nodes/{stack.ids['fed_node']}/")
    page.locator("#link-state[data-state=live]").wait_for()
    page.get_by_role("link", name="Drain", exact=True).click()
    expect(page.get_by_role("dialog")).to_be_visible()
    look(page, assets(stack), shots, "dialog-drain", AXE_RULES)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{stack.address}/clusters/{stack.ids['cluster']}/connection/")
    page.fill("#id_address", "http://127.0.0.1:9")
    page.get_by_role("button", name="Test connection").click()
    expect(page.get_by_text("It was not reached.")).to_be_visible()
    look(page, assets(stack), shots, "connection-tried", AXE_RULES)


def test_a_list_is_fetched_again_for_its_own_changes_only(stack: Stack, page: Page) -> None:
    """The page follows several topics, and more than one of them has a version of jobs."""
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url) if request.resource_type == "xhr" else None)
    page.goto(f"{stack.address}/jobs/")
    page.locator("#link-state[data-state=live]").wait_for()
    page.wait_for_timeout(3_000)
    assert fetched == []
