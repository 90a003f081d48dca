"""Every page in light, dark and phone width: no complaint of the console, no sideways scrolling, axe clean (U1, U5, U6)."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.e2e.conftest import Stack, watched

SHAPES = {
    "light": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}, "color_scheme": "light"},
}
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
    if page.locator("#link-state").count():
        page.locator("#link-state[data-state=live]").wait_for()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PAGES)
def test_page(stack: Stack, browser: Browser, sessions: dict[str, Any], shots: Path, name: str, shape: str) -> None:
    context = browser.new_context(storage_state=sessions["operator"], **SHAPES[shape])
    seen = watched(context)
    answer = seen.page.goto(stack.address + PAGES[name].format(**stack.ids))
    assert answer is not None
    assert answer.status == (404 if name == "not-found" else 200)
    settle(seen.page)
    if name == "tree":
        for level in ("Site", "Cluster", "Rack", "Node"):
            seen.page.locator("summary", has=seen.page.locator(".kind", has_text=level)).first.click(position={"x": 8, "y": 12})
            seen.page.wait_for_load_state("networkidle")
    seen.page.screenshot(path=shots / f"{name}-{shape}.png", full_page=True)
    wide = seen.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    expected = [line for line in seen.complaints if not (name == "not-found" and "404" in line)]
    axe = stack.environment["E2E_ASSETS"] + "/axe.min.js"
    if shape != "phone" and Path(axe).exists():
        seen.page.add_script_tag(path=axe)
        found = seen.page.evaluate("axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => v.id + ': ' + v.nodes.map(n => n.target.join(' ') + ' ' + (n.any[0] ? n.any[0].message : '')).slice(0, 3).join(' | ')))")
        assert found == [], f"axe: {found}"
    context.close()
    assert expected == []
    assert wide <= 0, f"the page is {wide} px wider than the screen"


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
