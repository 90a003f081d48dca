"""The portal, the queue and the ledger in light, dark and phone width, for a tenant and for an operator (P5, P14)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.e2e.conftest import Stack, Watched, watched
from tests.e2e.test_pool_screens import look

pytestmark = pytest.mark.xdist_group("browser")

MEMBER = {
    "offers": "/request/",
    "ask": "/request/{offered_spec}/",
    "my-work": "/my-work/",
    "my-work-over": "/my-work/?state=over",
    "request-running": "/requests/{request_finetune_vit}/",
    "request-waiting": "/requests/{request_segment_sweep}/",
    "request-extend": "/requests/{request_finetune_vit}/acts/extend/",
    "request-cancel": "/requests/{request_segment_sweep}/acts/cancel/",
    "member-extensions": "/extensions/",
}
OPERATOR = {
    "queue": "/capacity/queue/",
    "request-move": "/requests/{request_track_eval}/move/",
    "allocations": "/capacity/allocations/",
    "allocations-none": "/capacity/allocations/?q=no-such-thing",
    "extensions": "/extensions/",
    "extension-refuse": "/extensions/{extension}/refuse/",
    "operator-request": "/requests/{request_segment_sweep}/",
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


@pytest.mark.parametrize("name", MEMBER)
def test_a_tenants_page(stack: Stack, pages: dict[str, Watched], shots: Path | None, name: str) -> None:
    look(stack, pages["member"], shots, name, MEMBER[name])


@pytest.mark.parametrize("name", OPERATOR)
def test_an_operators_page(stack: Stack, pages: dict[str, Watched], shots: Path | None, name: str) -> None:
    look(stack, pages["operator"], shots, name, OPERATOR[name])
