"""Reads and checks catalogue files. A mistake names the file, the model and the key."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

MARKS = frozenset({"read", "driver table", "pci.ids", "mig-parted", "datasheet"})
_FOLDER = Path(__file__).parent
_SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{4}(:[0-9a-f]{4}:[0-9a-f]{4})?")
_PROFILE = re.compile(r"\d+g\.\d+gb([+-][a-z.]+)?")
_FIGURES = (
    "name_strings", "pci_ids", "memory", "tdp", "slowdown_temperature", "nvlink_links", "mig_profiles",
    "partition_modes",
)  # fmt: skip
_KEYS = frozenset({"slug", "vendor", "name", "sources", *_FIGURES})
_MIB = 1024**2
_MEMORY = re.compile(r"(\d+) (B|MiB|GiB)")
_UNITS = {"B": 1, "MiB": _MIB, "GiB": 1024 * _MIB}


class CatalogueError(ValueError):
    """A catalogue file can't be used; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Model:
    """One product. Memory in bytes, tdp in W, temperature in degrees C; None is unknown.

    `mig_profiles` are {name, count}: how many of that profile fit on an otherwise empty card.
    """

    slug: str
    vendor: str
    name: str
    name_strings: list[str]
    pci_ids: list[str]
    memory: int | None = None
    tdp: int | None = None
    slowdown_temperature: float | None = None
    nvlink_links: int | None = None
    mig_profiles: list[dict[str, Any]] = field(default_factory=list)
    partition_modes: list[str] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)


class _Checker:
    """Checks of one model; every complaint carries its place."""

    def __init__(self, place: str, raw: Mapping[str, Any]) -> None:
        self.place, self.raw = place, raw

    def fail(self, key: str, why: str) -> CatalogueError:
        return CatalogueError(f"{self.place}: {key}: {why}")

    def text(self, key: str) -> str:
        value = self.raw.get(key)
        if not isinstance(value, str) or not value.strip() or len(value) > 100:
            raise self.fail(key, f"a text of 1 to 100 characters is needed, not {value!r}")
        return value

    def texts(self, key: str, pattern: re.Pattern[str] | None = None) -> list[str]:
        value = self.raw.get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
            raise self.fail(key, f"a list of texts is needed, not {value!r}")
        for one in value:
            if pattern is not None and not pattern.fullmatch(one):
                raise self.fail(key, f"{one!r} is not in the form {pattern.pattern}")
        return list(value)

    def whole(self, key: str, highest: int) -> int | None:
        value = self.raw.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= highest):
            raise self.fail(key, f"a whole number from 0 to {highest} is needed, not {value!r}")
        return value

    def memory(self) -> int | None:
        value = self.raw.get("memory")
        if value is None:
            return None
        match = _MEMORY.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise self.fail("memory", f"an amount such as '81559 MiB' or '80 GiB' is needed, not {value!r}")
        return int(match[1]) * _UNITS[match[2]]

    def profiles(self) -> list[dict[str, Any]]:
        value = self.raw.get("mig_profiles", {})
        if not isinstance(value, dict):
            raise self.fail("mig_profiles", f"profile names with their counts are needed, not {value!r}")
        for name, count in value.items():
            if not isinstance(name, str) or not _PROFILE.fullmatch(name):
                raise self.fail("mig_profiles", f"{name!r} is no profile name")
            if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 8:
                raise self.fail("mig_profiles", f"{name} can exist 1 to 8 times, not {count!r}")
        return [{"name": name, "count": count} for name, count in value.items()]

    def sources(self, defaults: Mapping[str, str]) -> dict[str, str]:
        """A mark for every figure that is there, from the model or the file's defaults, and for no other."""
        own = self.raw.get("sources", {})
        if not isinstance(own, dict):
            raise self.fail("sources", f"figures with their marks are needed, not {own!r}")
        present = [key for key in _FIGURES if self.raw.get(key) not in (None, [], {})]
        for key in own:
            if key not in present:
                raise self.fail("sources", f"{key} has a mark but no figure")
        marks = {key: own.get(key, defaults.get(key)) for key in present}
        for key, mark in marks.items():
            if mark not in MARKS:
                raise self.fail("sources", f"{key} needs one of {', '.join(sorted(MARKS))}, not {mark!r}")
        return {key: str(mark) for key, mark in marks.items()}


def _model(place: str, raw: Any, defaults: Mapping[str, str]) -> Model:
    if not isinstance(raw, dict):
        raise CatalogueError(f"{place}: keys and values are needed, not {raw!r}")
    check = _Checker(f"{place} ({raw.get('slug', 'no slug')})", raw)
    for key in raw:
        if key not in _KEYS:
            raise check.fail(str(key), "unknown key")
    slug = check.text("slug")
    if not _SLUG.fullmatch(slug) or len(slug) > 64:
        raise check.fail("slug", f"lower-case words with dashes are needed, not {slug!r}")
    temperature = check.whole("slowdown_temperature", 150)
    return Model(
        slug=slug,
        vendor=check.text("vendor"),
        name=check.text("name"),
        name_strings=check.texts("name_strings"),
        pci_ids=check.texts("pci_ids", _PCI),
        memory=check.memory(),
        tdp=check.whole("tdp", 10_000),
        slowdown_temperature=float(temperature) if temperature is not None else None,
        nvlink_links=check.whole("nvlink_links", 100),
        mig_profiles=check.profiles(),
        partition_modes=check.texts("partition_modes"),
        sources=check.sources(defaults),
    )


def _read_file(path: Path) -> list[Model]:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CatalogueError(f"{path.name}: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("models"), list):
        raise CatalogueError(f"{path.name}: models: a list of models is needed")
    defaults = document.get("sources", {})
    if not isinstance(defaults, dict):
        raise CatalogueError(f"{path.name}: sources: figures with their marks are needed")
    return [_model(f"{path.name}, model {number}", raw, defaults) for number, raw in enumerate(document["models"], 1)]


def read_catalogue(folder: Path = _FOLDER) -> list[Model]:
    """Every model of every *.yaml in `folder`. Raises CatalogueError at the first mistake."""
    models: dict[str, Model] = {}
    for path in sorted(folder.glob("*.yaml")):
        for model in _read_file(path):
            if model.slug in models:
                raise CatalogueError(f"{path.name}: slug: {model.slug!r} is there twice")
            models[model.slug] = model
    return list(models.values())
