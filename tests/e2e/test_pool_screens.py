"""The pages of pools in light, dark and phone width, for an operator and for a tenant (P1-P4, U2)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.e2e.conftest import Stack, Watched, watched
from tests.e2e.test_screens import AXE, AXE_RULES, picture, settle

pytestmark = pytest.mark.xdist_group("browser")

OPERATOR = {
    "pools": "/capacity/pools/",
    "pool": "/capacity/pools/{pool}/",
    "pool-add": "/capacity/pools/add/",
    "pool-edit": "/capacity/pools/{pool}/edit/",
    "pool-delete": "/capacity/pools/{pool}/delete/",
    "specs": "/capacity/specs/",
    "spec-add": "/capacity/specs/add/",
    "spec-edit": "/capacity/specs/{spec}/",
    "priority-classes": "/capacity/priority-classes/",
    "priority-class-edit": "/capacity/priority-classes/{priority}/",
    "quotas": "/capacity/quotas/",
    "quota-edit": "/capacity/quotas/{quota}/",
    "maintenance": "/capacity/maintenance/",
    "window-edit": "/capacity/maintenance/{window}/",
    "tenants": "/tenants/",
    "tenant": "/tenants/{tenant}/",
    "tenant-edit": "/tenants/{tenant}/edit/",
    "member-add": "/tenants/{tenant}/members/add/",
    "mapping-add": "/tenants/{tenant}/mapping/add/",
}
MEMBER = {
    "member-team": "/tenants/{tenant}/",
    "member-usage": "/my-usage/",
    "member-project": "/tenants/{tenant}/projects/{project}/",
}


@pytest.fixture(scope="module")
def pages(stack: Stack, browser: Browser, sessions: dict[str, Any]) -> Iterator[dict[str, Watched]]:
    contexts = {
        role: browser.new_context(
            storage_state=sessions[role], viewport={"width": 1440, "height": 900}, reduced_motion="reduce"
        )
        for role in ("operator", "member")
    }
    yield {role: watched(context) for role, context in contexts.items()}
    for context in contexts.values():
        context.close()


def look(stack: Stack, seen: Watched, shots: Path | None, name: str, address: str) -> None:
    page = seen.page
    seen.complaints.clear()
    page.set_viewport_size({"width": 1440, "height": 900})
    page.emulate_media(color_scheme="light")
    answer = page.goto(stack.address + address.format(**stack.ids))
    assert answer is not None
    assert answer.status == 200
    settle(page)
    page.evaluate((Path(stack.environment["E2E_ASSETS"]) / "axe.min.js").read_text())
    found = {}
    for theme, rules in AXE_RULES.items():
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
        page.locator(f"html[data-bs-theme={theme}]").wait_for()
        picture(page, shots, f"{name}-{theme}")
        if violations := page.evaluate(AXE, rules):
            found[theme] = violations
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 360, "height": 740})
    picture(page, shots, f"{name}-phone")
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert seen.complaints == []
    assert wide <= 0, f"the page is {wide} px wider than a phone's screen"
    assert found == {}


@pytest.mark.parametrize("name", OPERATOR)
def test_an_operators_page(stack: Stack, pages: dict[str, Watched], shots: Path | None, name: str) -> None:
    look(stack, pages["operator"], shots, name, OPERATOR[name])


@pytest.mark.parametrize("name", MEMBER)
def test_a_tenants_page(stack: Stack, pages: dict[str, Watched], shots: Path | None, name: str) -> None:
    look(stack, pages["member"], shots, name, MEMBER[name])


def fresh(seen: Watched, stack: Stack, address: str) -> Page:
    seen.page.set_viewport_size({"width": 1440, "height": 900})
    seen.page.goto(stack.address + address.format(**stack.ids))
    settle(seen.page)
    return seen.page


def test_the_preview_follows_what_is_chosen(stack: Stack, pages: dict[str, Watched], shots: Path | None) -> None:
    page = fresh(pages["operator"], stack, "/capacity/pools/add/")
    page.get_by_text("Choose a model, a cluster or a label").wait_for()
    page.get_by_label("Name").fill("Preview")
    page.get_by_label("Card model").select_option(label="Test A100 SXM 80 GB")
    page.locator("#rule-preview").get_by_text("in another pool").wait_for()
    picture(page, shots, "pool-add-preview")
    page.get_by_label("Labels").press_sequentially("no=such")
    page.get_by_text("No card meets these conditions now").wait_for()


def test_a_specs_form_shows_what_its_way_of_sharing_needs(stack: Stack, pages: dict[str, Watched]) -> None:
    page = fresh(pages["operator"], stack, "/capacity/specs/add/")
    shown = {"whole": "Cards per unit", "mig": "MIG profile", "time_slice": "Parts per card", "mps": "Parts per card"}
    for mode, label in shown.items():
        page.get_by_label("How a card is used").select_option(mode)
        for other in set(shown.values()):
            assert page.get_by_label(other).is_visible() == (other == label)
