"""What people do with requests in the browser: ask by visible labels alone, follow, act; put the queue in order."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.conftest import Stack, Watched, watched

pytestmark = pytest.mark.xdist_group("browser")
MOST_STEPS = 6
MOST_CLICKS = 3


class Person:
    """Somebody who has never seen the product: uses what has a visible label, and counts what it takes."""

    def __init__(self, page: Page) -> None:
        self.page, self.clicks, self.steps = page, 0, 0

    def click(self, role: Any, name: str) -> None:
        found = self.page.get_by_role(role, name=name, exact=True).filter(visible=True).first
        expect(found).to_be_visible()
        found.click()
        self.clicks += 1
        self.steps += 1

    def fill(self, label: str, text: str) -> None:
        self.page.get_by_label(label, exact=True).fill(text)
        self.steps += 1

    def choose(self, label: str) -> None:
        self.page.get_by_label(label, exact=True).check()
        self.steps += 1


@pytest.fixture
def people(stack: Stack, browser: Browser, sessions: dict[str, Any]) -> Iterator[dict[str, Watched]]:
    contexts = {role: browser.new_context(storage_state=sessions[role]) for role in ("member", "operator", "auditor")}
    for context in contexts.values():
        context.set_default_timeout(15_000)
    yield {role: watched(context) for role, context in contexts.items()}
    for context in contexts.values():
        context.close()


def test_a_tenant_asks_for_cards_in_three_clicks(stack: Stack, people: dict[str, Watched]) -> None:
    """P14: from the page after the sign-in, by labels alone."""
    page = people["member"].page
    page.goto(stack.address)
    person = Person(page)
    person.click("link", "Request")
    person.click("link", "Request 1 x H100")
    person.click("button", "Send the request")
    page.wait_for_url(re.compile(r"/requests/[0-9a-f-]{36}/$"))
    expect(page.get_by_text("is in the queue.")).to_be_visible()
    expect(page.get_by_text("member asked for 1 x 1 x H100 in Training.")).to_be_visible()
    assert person.clicks <= MOST_CLICKS


@pytest.mark.parametrize("way", ["script", "image"])
def test_a_tenant_starts_a_script_or_an_image_in_six_steps(stack: Stack, people: dict[str, Watched], way: str) -> None:
    page = people["member"].page
    page.goto(stack.address)
    person = Person(page)
    person.click("link", "Request")
    person.click("link", "Request 8 x H100")
    expect(page.get_by_text("A plan is being made")).to_be_hidden()
    if way == "script":
        person.choose("A batch script")
        person.fill("Script", "#!/bin/bash\nsrun train\n")
    else:
        person.choose("A container image")
        person.fill("Image", "example.org/team/train:1.4")
    person.click("button", "Send the request")
    page.wait_for_url(re.compile(r"/requests/[0-9a-f-]{36}/$"))
    expect(page.get_by_text("is in the queue.")).to_be_visible()
    assert person.clicks <= MOST_CLICKS
    assert person.steps <= MOST_STEPS
    assert people["member"].complaints == []


def test_the_form_plans_for_what_is_typed_and_loses_nothing(stack: Stack, people: dict[str, Watched]) -> None:
    page = people["member"].page
    page.goto(f"{stack.address}/request/{stack.ids['offered_spec']}/")
    expect(page.get_by_text("It waits").or_(page.get_by_text("It starts at once"))).to_be_visible()
    page.get_by_label("How many units").fill("500")
    page.get_by_label("How many units").blur()
    expect(page.get_by_text(re.compile("^Needs 500 "))).to_be_visible()
    page.get_by_label("A batch script").check()
    page.get_by_label("Script", exact=True).fill("srun without an interpreter")
    page.get_by_role("button", name="Send the request").click()
    expect(page.locator("#id_script_error")).to_contain_text("names its interpreter")
    expect(page.get_by_label("Script", exact=True)).to_have_value("srun without an interpreter")
    expect(page.get_by_label("How many units")).to_have_value("500")


def test_my_work_follows_what_others_do_and_acts_in_a_dialog(stack: Stack, people: dict[str, Watched]) -> None:
    page, operator = people["member"].page, people["operator"].page
    page.goto(f"{stack.address}/my-work/")
    page.locator("#link-state[data-state=live]").wait_for()
    line = page.locator(".request-line", has=page.get_by_role("link", name="segment-sweep", exact=True))
    expect(line).to_contain_text("Waiting")
    operator.goto(f"{stack.address}/requests/{stack.ids['request_segment_sweep']}/")
    operator.get_by_role("link", name="Hold", exact=True).click()
    operator.get_by_label(re.compile("^Why")).fill("looking at the node")
    operator.get_by_role("button", name="Hold", exact=True).click()
    expect(operator.get_by_text("operator put it on hold: looking at the node.")).to_be_visible()
    page.mouse.move(0, 0)
    expect(line).to_contain_text("On hold", timeout=15_000)
    line.get_by_role("link", name="Resume segment-sweep").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("It starts when its turn comes.")
    dialog.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("segment-sweep is resumed. To undo it, put it on hold.")).to_be_visible()
    assert people["member"].complaints == people["operator"].complaints == []


def places(page: Page) -> list[str]:
    return [text.strip() for text in page.locator(".queue-line h3").all_inner_texts()]


def test_the_queue_is_put_in_order_by_drag_and_by_keyboard(stack: Stack, people: dict[str, Watched]) -> None:
    """P5: a dragged line asks why; the Move button does the same without a pointer."""
    page = people["operator"].page
    page.set_viewport_size({"width": 1280, "height": 1600})
    page.goto(f"{stack.address}/capacity/queue/")
    page.locator("#link-state[data-state=live]").wait_for()
    before = places(page)
    assert before.index("pretrain-llm") < before.index("notebook")
    lines = page.locator(".queue-line")
    lines.nth(before.index("notebook")).locator(".queue-place").drag_to(
        lines.nth(before.index("pretrain-llm")), target_position={"x": 200, "y": 4}
    )
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading", name="Move notebook in the queue of Training")).to_be_visible()
    expect(dialog.get_by_label("Put it before")).to_have_value(stack.ids["request_pretrain_llm"])
    dialog.get_by_role("button", name="Move").click()
    expect(dialog.get_by_text("This field is required.")).to_be_visible()
    dialog.get_by_label("Why").fill("A demo tomorrow")
    dialog.get_by_role("button", name="Move").click()
    expect(page.get_by_text("notebook has a new place.")).to_be_visible()
    after = places(page)
    assert after.index("notebook") == after.index("pretrain-llm") - 1
    move = page.get_by_role("link", name="Move notebook")
    move.focus()
    page.keyboard.press("Enter")
    expect(dialog.get_by_label("Put it before")).to_be_focused()
    dialog.get_by_label("Put it before").select_option(label="Nothing: the end of the queue")
    dialog.get_by_label("Why").fill("The demo is over")
    page.keyboard.press("Enter")
    expect(page.locator(".queue-line h3").last).to_have_text("notebook")
    expect(page.get_by_text("notebook has a new place.")).to_be_visible()
    page.goto(f"{stack.address}/requests/{stack.ids['request_notebook']}/")
    expect(page.get_by_text(re.compile("moved it in the queue .*: A demo tomorrow"))).to_be_visible()
    assert people["operator"].complaints == []


def test_the_ledger_by_keyboard(stack: Stack, people: dict[str, Watched]) -> None:
    page = people["operator"].page
    page.goto(f"{stack.address}/capacity/allocations/")
    page.locator('[data-timeline][data-ready="node-24h"]').wait_for()
    expect(page.locator("[data-timeline-note]")).to_contain_text("holders on")
    page.locator("[data-timeline] canvas").focus()
    tip = page.locator(".timeline-tip")
    expect(tip).to_be_visible()
    expect(tip).to_contain_text(re.compile("Held|Unassigned"))
    page.select_option("#tenant", "none")
    page.wait_for_url(re.compile("tenant=none"))
    expect(page.locator(".allocations-list tbody tr")).to_have_count(1)
    expect(page.locator(".allocations-list")).to_contain_text("Unassigned")
    page.locator('[data-timeline][data-ready="node-24h"]').wait_for()
    expect(page.locator("[data-timeline-note]")).to_contain_text("1 holder on")
    page.locator("[data-timeline] canvas").focus()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/fleet/cards/"))


def test_others_find_nothing_of_it(stack: Stack, people: dict[str, Watched]) -> None:
    """X3: the member is of Vision; what Language asked for is not there for them, by link or by search."""
    page = people["member"].page
    for address in ("/my-work/?whose=team", "/extensions/", "/request/"):
        page.goto(stack.address + address)
        expect(page.get_by_text("pretrain-llm")).to_have_count(0)
    answer = page.goto(f"{stack.address}/requests/{stack.ids['request_pretrain_llm']}/")
    assert answer is not None
    assert answer.status == 404
    page.goto(f"{stack.address}/my-work/")
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Find")
    palette.get_by_role("searchbox").fill("segment")
    expect(palette.get_by_role("link", name=re.compile("segment-sweep"))).to_be_visible()
    palette.get_by_role("searchbox").fill("pretrain")
    expect(palette.get_by_text("Nothing matches")).to_be_visible()
