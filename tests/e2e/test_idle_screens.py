"""Idle cards in light, dark and phone width, for an operator and for a tenant (P10)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.e2e.conftest import Stack, Watched, watched
from tests.e2e.test_pool_screens import fresh, look
from tests.e2e.test_screens import picture

pytestmark = pytest.mark.xdist_group("browser")

OPERATOR = {
    "idle": "/capacity/idle/",
    "idle-reclaim": "/capacity/idle/{idle_suggested}/reclaim/",
    "idle-leave": "/capacity/idle/{idle_suggested}/leave/",
    "idle-refuse": "/capacity/idle/{idle_asks}/refuse/",
    "idle-spare": "/capacity/idle/spared/add/",
}
MEMBER = {
    "member-idle": "/capacity/idle/",
    "member-idle-release": "/capacity/idle/{idle_asks}/release/",
    "member-idle-extend": "/capacity/idle/{idle_asks}/extend/",
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


@pytest.mark.parametrize("name", OPERATOR)
def test_an_operators_page(stack: Stack, pages: dict[str, Watched], shots: Path | None, name: str) -> None:
    look(stack, pages["operator"], shots, name, OPERATOR[name])


@pytest.mark.parametrize("name", MEMBER)
def test_a_tenants_page(stack: Stack, pages: dict[str, Watched], shots: Path | None, name: str) -> None:
    look(stack, pages["member"], shots, name, MEMBER[name])


def test_a_decision_is_on_the_owners_screen_without_loading_it_again(
    stack: Stack, pages: dict[str, Watched], shots: Path | None
) -> None:
    """The owner's page is open while an operator decides in a dialog."""
    owner = fresh(pages["member"], stack, "/capacity/idle/")
    owner.get_by_text("asks to keep them for").wait_for()
    operator = fresh(pages["operator"], stack, "/capacity/idle/")
    operator.get_by_role("link", name="Refuse job 70411").click()
    dialog = operator.get_by_role("dialog")
    dialog.get_by_label("Why").fill("Two gangs wait for these cards")
    picture(operator, shots, "idle-dialog")
    dialog.get_by_role("button", name="Refuse").click()
    operator.get_by_text("job 70411 gets no more time.").wait_for()
    owner.get_by_text("operator refused more time:").wait_for(timeout=10_000)
    owner.get_by_text("Two gangs wait for these cards").wait_for()
    assert owner.get_by_role("link", name="Ask for time job 70411").count() == 0
    assert owner.get_by_role("link", name="Release job 70411").count() == 1
