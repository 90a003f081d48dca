"""PostgreSQL and Redis for the whole test run: started once by the controller, one database a worker."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from sensaka import embedded

_FOLDER = "SENSAKA_TEST_FOLDER"
if _FOLDER not in os.environ:
    folder = Path(tempfile.mkdtemp(prefix="sensaka-test-"))
    folder.chmod(0o711)
    os.environ[_FOLDER] = str(folder)
LAYOUT = embedded.Layout(Path(os.environ[_FOLDER]) / "var")
os.environ["SENSAKA_VAR"] = str(LAYOUT.var)
os.environ.setdefault("DATABASE_URL", LAYOUT.database_url)
os.environ.setdefault("REDIS_URL", LAYOUT.redis_url)

_services: list[embedded.PostgreSQL | embedded.Redis] = []


def _controls(config: pytest.Config) -> bool:
    return not hasattr(config, "workerinput") and not config.option.collectonly


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if not _controls(config) or os.environ["DATABASE_URL"] != LAYOUT.database_url:
        return
    _services.extend((embedded.PostgreSQL(LAYOUT, durable=False), embedded.Redis(LAYOUT)))
    for service in _services:
        service.start()


def pytest_unconfigure(config: pytest.Config) -> None:
    for service in reversed(_services):
        service.stop()
    if _services:
        shutil.rmtree(os.environ[_FOLDER], ignore_errors=True)
        shutil.rmtree(LAYOUT.run, ignore_errors=True)
