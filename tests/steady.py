"""What makes counts of a page's queries the same whenever they are taken."""

from collections.abc import Iterator

import pytest
from django.core.cache import cache

from sensaka.cockpit import context


@pytest.fixture(autouse=True)
def steady_frame(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The frame of all pages asks once a test whether the fleet is simulated, not once in some seconds."""
    monkeypatch.setattr(context, "KEEP", None)
    cache.clear()
    yield
    cache.clear()
