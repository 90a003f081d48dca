"""Every page in light, dark and phone width: a silent console, no sideways scrolling, axe clean (U1, U5, U6)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.e2e.conftest import Stack, Watched, watched

# one worker: Playwright's loop and the database of these tests live once
pytestmark = pytest.mark.xdist_group("browser")

PAGES = {
    "overview": "/",
    "attention": "/overview/attention/?all=1",
    "map": "/fleet/map/",
    "map-activity": "/fleet/map/?measure=activity",
    "tree": "/fleet/tree/",
    "nodes": "/fleet/nodes/",
    "node": "/fleet/nodes/{node}/",
    "cards": "/fleet/cards/",
    "card": "/fleet/cards/{card}/",
    "card-divided": "/fleet/cards/{divided}/",
    "clusters": "/clusters/",
    "cluster": "/clusters/{cluster}/",
    "cluster-lost": "/clusters/{lost_cluster}/",
    "cluster-bare": "/clusters/{bare_cluster}/",
    "cluster-connect": "/clusters/connect/",
    "connection-edit": "/clusters/{cluster}/connection/",
    "connection-delete": "/clusters/{cluster}/connection/delete/",
    "jobs": "/jobs/",
    "jobs-filtered": "/jobs/?node={node}&state=running&cards=known&span=7d",
    "jobs-none": "/jobs/?q=no-such-job",
    "job": "/jobs/{job}/",
    "job-waiting": "/jobs/{job_waiting}/",
    "job-unknown": "/jobs/{job_unknown}/",
    "job-lost": "/jobs/{job_lost}/",
    "job-steps": "/jobs/{job_steps}/",
    "job-cancel": "/jobs/{job}/acts/cancel/",
    "job-signal": "/jobs/{job}/acts/signal/",
    "cordons": "/cordons/",
    "node-drained": "/fleet/nodes/{drained_node}/",
    "node-cordon": "/cordons/{node}/cordon/",
    "node-drain": "/cordons/{free_node}/drain/",
    "node-return": "/cordons/{drained_node}/return/",
    "journal": "/journal/",
    "search": "/search/?q=gpu01",
    "collectors": "/collectors/",
    "enrol": "/collectors/add/",
    "enrol-bmc": "/collectors/add/bmc/",
    "enrol-exporter": "/collectors/add/exporter/",
    "enrol-agent": "/collectors/add/agent/",
    "collector-delete": "/collectors/bmc/{bmc}/delete/",
    "places": "/settings/places/",
    "place-add": "/settings/places/rack/add/",
    "credentials": "/settings/credentials/",
    "credential-add": "/settings/credentials/add/",
    "card-models": "/settings/models/",
    "card-model-add": "/settings/models/add/",
    "thresholds": "/settings/thresholds/",
    "users": "/settings/users/",
    "user-add": "/settings/users/add/",
    "profile": "/account/",
    "tokens": "/account/tokens/",
    "not-found": "/nothing/here/",
}
MOST_SCRIPT = 600_000  # bytes compressed, UI.md


def settle(page: Page) -> None:
    """Wait for what a page draws by script."""
    if page.locator("[data-heatmap]").count():
        page.locator("[data-heatmap][data-ready]").wait_for()
    if page.locator("[data-charts]").count():
        page.locator("[data-charts][data-ready]").wait_for()
    if page.locator("[data-timeline]").count():
        page.locator("[data-timeline][data-ready]").wait_for()
    if page.locator("[data-job-charts]").count():
        page.locator("[data-job-charts][data-ready='1']").wait_for()
    if page.locator("#link-state").count():
        page.locator("#link-state[data-state=live]").wait_for()
    for planned in ("planning", "A plan is being made"):
        page.get_by_text(planned, exact=True).first.wait_for(state="hidden")


AXE = """only => axe.run(document, {resultTypes: ['violations'], ...(only ? {runOnly: only} : {})})
  .then(result => result.violations.map(found => {
    const nodes = found.nodes.map(node => node.target.join(' ') + ' ' + node.any.map(any => any.message).join(' '));
    return found.id + ': ' + nodes.slice(0, 3).join(' | ');
  }))"""
# A theme changes colours only, and a template looked at once need not be looked at again.
AXE_RULES: dict[str, list[str] | None] = {"light": None, "dark": ["color-contrast"]}
SAME_TEMPLATE = frozenset({"map-activity", "card-divided", "credential-add", "card-model-add", "user-add", "not-found"})


def open_the_tree(page: Page) -> None:
    for level in ("Site", "Cluster", "Rack", "Node"):
        line = page.locator("summary", has=page.locator(".kind", has_text=level)).first
        with page.expect_response(lambda answer: "/fleet/tree/part/" in answer.url):
            line.click(position={"x": 8, "y": 12})


@pytest.fixture(scope="module")
def open_page(stack: Stack, browser: Browser, sessions: dict[str, Any]) -> Iterator[Watched]:
    context = browser.new_context(
        storage_state=sessions["operator"], viewport={"width": 1440, "height": 900}, color_scheme="light",
        reduced_motion="reduce",
    )  # fmt: skip
    yield watched(context)
    context.close()


def picture(page: Page, shots: Path | None, name: str) -> None:
    if shots is not None:
        page.screenshot(path=shots / f"{name}.png", full_page=True)


def look(page: Page, assets: Path, shots: Path | None, name: str, rules: dict[str, list[str] | None]) -> None:
    """Both themes and a phone's width: axe by `rules`, and nothing that is wider than the screen."""
    found = {}
    if rules:
        # a script tag would be held up by the policy of the pages
        page.evaluate((assets / "axe.min.js").read_text())
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
        page.locator(f"html[data-bs-theme={theme}]").wait_for()
        picture(page, shots, f"{name}-{theme}")
        if theme in rules and (violations := page.evaluate(AXE, rules[theme])):
            found[theme] = violations
    page.emulate_media(color_scheme="light")
    page.locator("html[data-bs-theme=light]").wait_for()
    page.set_viewport_size({"width": 360, "height": 740})
    picture(page, shots, f"{name}-phone")
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, f"the page is {wide} px wider than a phone's screen"
    assert found == {}


@pytest.mark.parametrize("name", PAGES)
def test_page(stack: Stack, open_page: Watched, shots: Path | None, name: str) -> None:
    page, complaints = open_page.page, open_page.complaints
    complaints.clear()
    page.set_viewport_size({"width": 1440, "height": 900})
    page.emulate_media(color_scheme="light")
    answer = page.goto(stack.address + PAGES[name].format(**stack.ids))
    assert answer is not None
    assert answer.status == (404 if name == "not-found" else 200)
    settle(page)
    if name == "tree":
        open_the_tree(page)
    look(page, assets(stack), shots, name, {} if name in SAME_TEMPLATE else AXE_RULES)
    assert [line for line in complaints if not (name == "not-found" and "404" in line)] == []


def assets(stack: Stack) -> Path:
    return Path(stack.environment["E2E_ASSETS"])


# Pages of other roles and of nobody: the role, the address and the answer's status.
OTHERS = {
    "sign-in": (None, "/fleet/cards/", 200),
    "member": ("member", "/", 200),
    "member-profile": ("member", "/account/", 200),
    "forbidden": ("auditor", "/collectors/add/", 403),
    "collectors-auditor": ("auditor", "/collectors/", 200),
}


@pytest.mark.parametrize("name", OTHERS)
def test_page_of_others(
    stack: Stack, browser: Browser, sessions: dict[str, Any], shots: Path | None, name: str
) -> None:
    role, address, status = OTHERS[name]
    context = browser.new_context(
        storage_state=sessions[role] if role else None, viewport={"width": 1440, "height": 900}, reduced_motion="reduce"
    )
    page = context.new_page()
    answer = page.goto(stack.address + address)
    assert answer is not None
    assert answer.status == status
    settle(page)
    look(page, assets(stack), shots, name, AXE_RULES)
    context.close()


def test_pages_that_show_a_secret_once(stack: Stack, open_page: Watched, shots: Path | None) -> None:
    """The commands for a node, and a new API token."""
    page = open_page.page
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{stack.address}/collectors/add/agent/")
    page.fill("#id_name", "pictures")
    page.select_option("#id_site", label="Central")
    page.get_by_role("button", name="Make the token").click()
    page.locator("#commands").wait_for()
    settle(page)
    look(page, assets(stack), shots, "agent-commands", AXE_RULES)
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{stack.address}/account/tokens/")
    page.fill("#id_name", "pictures")
    page.get_by_role("button", name="Make", exact=True).click()
    page.locator("#new-token").wait_for()
    settle(page)
    look(page, assets(stack), shots, "token-shown", AXE_RULES)
    page.get_by_role("button", name="Revoke pictures").click()


def test_scripts_are_small(stack: Stack, browser: Browser, sessions: dict[str, Any]) -> None:
    """UI.md: no page ships more than 600 kB of script compressed; nothing comes from elsewhere."""
    import gzip

    context = browser.new_context(storage_state=sessions["operator"])
    page = context.new_page()
    sizes: dict[str, int] = {}
    elsewhere: list[str] = []

    def note(response: Any) -> None:
        if not response.url.startswith((stack.address, "data:", "blob:")):
            elsewhere.append(response.url)
        elif response.url.split("?")[0].endswith(".js"):
            sizes[response.url] = len(gzip.compress(response.body()))

    page.on("response", note)
    page.goto(f"{stack.address}/fleet/cards/{stack.ids['card']}/")
    settle(page)
    context.close()
    assert elsewhere == []
    assert 0 < sum(sizes.values()) < MOST_SCRIPT, sizes
