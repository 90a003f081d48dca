"""A real server on a seeded database, and the system's Chromium."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from cryptography.fernet import Fernet
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, sync_playwright

from sensaka import assets
from tests.sensaka.pages.seed import PASSWORD
from tests.services import LAYOUT

ROOT = Path(__file__).resolve().parents[2]
DATABASE = "sensaka_e2e"
CHROMIUM_FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@dataclass
class Stack:
    """The running server and what its database holds."""

    address: str
    ids: dict[str, Any]
    process: subprocess.Popen[bytes]
    command: list[str]
    environment: dict[str, str]
    log: Path
    restarts: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command, cwd=ROOT, env=self.environment, stdout=log, stderr=log)
        wait_until_up(self.address, self.process, self.log)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)


def wait_until_up(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{address}/healthz", timeout=2):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"the server did not come up: {log.read_text(errors='replace')[-2000:]}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def built_assets() -> Path:
    """var/assets of the checkout, made when missing."""
    var = os.environ.get("SENSAKA_VAR")
    os.environ["SENSAKA_VAR"] = str(ROOT / "var")
    try:
        assets.build(say=lambda line: None)
    except assets.AssetsError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"the browser's assets could not be built: {error}")
    finally:
        if var is not None:
            os.environ["SENSAKA_VAR"] = var
    return ROOT / "var" / "assets"


def fresh_database() -> str:
    with psycopg.connect(
        host=str(LAYOUT.postgres_socket), user="sensaka", dbname="postgres", autocommit=True
    ) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {DATABASE}")
    return f"postgresql://sensaka@/{DATABASE}?host={LAYOUT.postgres_socket}"


@pytest.fixture(scope="package")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    if os.environ["DATABASE_URL"] != LAYOUT.database_url:
        pytest.skip("the browser tests make a database of their own in the run's embedded PostgreSQL")
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.e2e.settings",
        "DATABASE_URL": fresh_database(),
        "E2E_ASSETS": str(built_assets()),
        "E2E_ENCRYPTION_KEY": Fernet.generate_key().decode(),
    }
    prepared = subprocess.run(
        [sys.executable, "-m", "tests.e2e.prepare"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert prepared.returncode == 0, prepared.stderr[-3000:]
    port = free_port()
    command = [
        sys.executable, "-m", "uvicorn", "sensaka.asgi:application", "--host", "127.0.0.1", "--port", str(port),
        "--log-level", "warning", "--ws", "websockets-sansio",
    ]  # fmt: skip
    log = tmp_path_factory.mktemp("e2e") / "server.log"
    made = Stack(
        f"http://127.0.0.1:{port}", json.loads(prepared.stdout.splitlines()[-1]), None, command, environment, log
    )  # type: ignore[arg-type]
    made.start()
    yield made
    made.process.terminate()
    try:
        made.process.wait(10)
    except subprocess.TimeoutExpired:
        made.kill()


@pytest.fixture(scope="package")
def playwright_driver() -> Iterator[Playwright]:
    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="package")
def browser(playwright_driver: Playwright) -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        if os.environ.get("CI"):
            raise RuntimeError("the browser tests need the Debian package chromium")
        pytest.skip("the Debian package chromium is not installed")
    browser = playwright_driver.chromium.launch(executable_path=program, args=CHROMIUM_FLAGS)
    yield browser
    browser.close()


@dataclass
class Watched:
    """A page and everything that its console complained of."""

    page: Page
    complaints: list[str]


def watched(context: BrowserContext) -> Watched:
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda said: complaints.append(f"{said.type}: {said.text}") if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    return Watched(page, complaints)


@pytest.fixture(scope="package")
def sessions(stack: Stack, browser: Browser) -> dict[str, Any]:
    """Signed-in cookies by role, made once through the sign-in page."""
    found = {}
    for role in ("operator", "auditor", "member"):
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{stack.address}/sign-in/")
        page.fill("#id_username", role)
        page.fill("#id_password", PASSWORD)
        page.click("button[type=submit]")
        page.wait_for_url(f"{stack.address}/")
        found[role] = context.storage_state()
        context.close()
    return found


@pytest.fixture(scope="package")
def shots() -> Path | None:
    """Where pictures of every page go: the folder E2E_SCREENSHOTS; without it none are taken."""
    named = os.environ.get("E2E_SCREENSHOTS")
    if not named:
        return None
    folder = Path(named)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
