"""What holds for every folder of tests."""

from pathlib import Path

import pytest

# Folders whose tests share one thing that two workers must not hold at once.
_GROUPS = {"e2e": "browser"}
_HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep each such folder on one worker: Playwright's loop and the browser tests' database live once."""
    for item in items:
        folder = item.path.relative_to(_HERE).parts[0] if item.path.is_relative_to(_HERE) else ""
        if folder in _GROUPS:
            item.add_marker(pytest.mark.xdist_group(_GROUPS[folder]))
