"""A missing or senseless setting stops the start with one clear line (X1)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from sensaka.settings import env


@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param("maybe", "FLAG='maybe': use true or false", id="not a boolean"),
    ],
)
def test_a_senseless_boolean_is_named(monkeypatch: pytest.MonkeyPatch, value: str, message: str) -> None:
    monkeypatch.setenv("FLAG", value)
    with pytest.raises(ImproperlyConfigured, match=message):
        env.boolean("FLAG", False)


@pytest.mark.parametrize("value", ["0", "70000", "eight", "1.5"])
def test_a_number_out_of_range_says_the_range(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("N", value)
    with pytest.raises(ImproperlyConfigured, match="from 1 to 65535"):
        env.integer("N", 8000, low=1, high=65535)


@pytest.mark.parametrize(
    ("url", "host", "name"),
    [
        ("postgresql://u:p%40@db:5433/sensaka", "db", "sensaka"),
        ("postgresql://u@/sensaka?host=/run/pg", "/run/pg", "sensaka"),
    ],
)
def test_database_urls(monkeypatch: pytest.MonkeyPatch, url: str, host: str, name: str) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    found = env.database("DATABASE_URL", url)
    assert (found["HOST"], found["NAME"]) == (host, name)


def test_a_database_url_of_another_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "sqlite:///x")
    with pytest.raises(ImproperlyConfigured, match="use postgresql://"):
        env.database("DATABASE_URL", "x")


def test_a_secret_can_come_from_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("hidden\n")
    monkeypatch.delenv("SECRET_KEY", raising=False)
    monkeypatch.setenv("SECRET_KEY_FILE", str(tmp_path / "key"))
    assert env.text("SECRET_KEY") == "hidden"


@pytest.mark.parametrize(
    ("environment", "line"),
    [
        pytest.param({}, "SECRET_KEY is not set", id="nothing set"),
        pytest.param({"SECRET_KEY": "short"}, "use at least 40 random characters", id="weak key"),
        pytest.param({"SECRET_KEY": "x" * 50}, "SENSAKA_SECRET_KEYS is not set", id="no field key"),
        pytest.param(
            {"SECRET_KEY": "x" * 50, "SENSAKA_SECRET_KEYS": "abc"},
            "each key comes from `manage.py make_key`",
            id="bad key",
        ),
    ],
)
def test_production_does_not_start_without_its_settings(environment: dict[str, str], line: str) -> None:
    base = {"PATH": os.environ["PATH"], "DJANGO_SETTINGS_MODULE": "sensaka.settings.production"}
    done = subprocess.run(
        [sys.executable, "manage.py", "check"], env=base | environment, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert line in done.stderr
