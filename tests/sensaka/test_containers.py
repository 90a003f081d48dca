"""The production files fit together: compose services, their settings, the image (X1)."""

import os
import subprocess
import sys
from pathlib import Path

import yaml
from cryptography.fernet import Fernet

ROOT = Path(__file__).resolve().parents[2]


def example_settings() -> dict[str, str]:
    lines = (ROOT / "deploy" / "compose.env.example").read_text().splitlines()
    pairs = (line.split("=", 1) for line in lines if line and not line.startswith("#"))
    return dict(pairs)


def test_compose_runs_what_the_architecture_names() -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    assert set(services) >= {"postgres", "redis", "web", "worker", "beat"}
    for name in ("web", "worker", "beat"):
        assert services[name]["env_file"] == "deploy/compose.env"
        assert services[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"


def test_production_starts_with_what_the_example_asks_for() -> None:
    settings = example_settings()
    empty = {name for name, value in settings.items() if not value}
    assert empty == {"POSTGRES_PASSWORD", "SECRET_KEY", "SENSAKA_SECRET_KEYS"}
    settings |= {"SECRET_KEY": "k" * 60, "SENSAKA_SECRET_KEYS": Fernet.generate_key().decode()}
    environment = {
        "PATH": os.environ["PATH"],
        "SENSAKA_VAR": os.environ["SENSAKA_VAR"],
        "DJANGO_SETTINGS_MODULE": "sensaka.settings.production",
        **settings,
    }
    done = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "ERROR"],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_the_image_has_every_file_that_it_copies() -> None:
    for line in (ROOT / "Dockerfile").read_text().splitlines():
        if line.startswith("COPY ") and "--from" not in line:
            for source in line.split()[1:-1]:
                assert (ROOT / source).exists(), source
