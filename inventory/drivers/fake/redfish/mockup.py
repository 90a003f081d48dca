"""Loads a recorded tree: a folder or tarball of `index.json`, or flat files with `/` written `_`."""

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from inventory.drivers.fake.redfish.tree import Resource

_FLAT = "_redfish_v1"


class NotAMockup(ValueError):
    """The folder or file holds no Redfish tree."""


def load_mockup(path: Path) -> dict[str, Resource]:
    """Resources by path. A file that is not a JSON object is passed over; no tree at all is NotAMockup."""
    found: dict[str, Resource] = {}
    later: dict[str, list[Resource]] = {}
    for name, content in _contents(path):
        place = _place(name)
        if place is None:
            continue
        try:
            resource = json.loads(content)
        except ValueError:
            continue
        if isinstance(resource, dict) and "?" in place:
            later.setdefault(place.partition("?")[0], []).append(resource)
        elif isinstance(resource, dict):
            # A flat name can't tell "_" from "/", the resource itself can.
            own = resource.get("@odata.id")
            flat = isinstance(own, str) and "#" not in own and PurePosixPath(name).name.startswith(_FLAT)
            found[(str(own) if flat else place).rstrip("/")] = resource
    if "/redfish/v1" not in found:
        raise NotAMockup(f"{path} holds no Redfish service root")
    for place, pages in later.items():
        _join(found.get(place, {}), pages)
    return found


def _join(collection: Resource, pages: list[Resource]) -> None:
    """Puts recorded pages together again: the server makes its own."""
    members = {str(member): member for page in [collection, *pages] for member in page.get("Members", [])}
    collection["Members"] = list(members.values())
    collection.pop("Members@odata.nextLink", None)


def _contents(path: Path) -> Iterator[tuple[str, bytes]]:
    if path.is_dir():
        for file in sorted(path.rglob("*.json")):
            if file.is_file():  # a mock-up has folders that are named so, too
                yield file.relative_to(path).as_posix(), file.read_bytes()
        return
    with tarfile.open(path) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() and member.name.endswith(".json") else None
            if content is not None:
                yield member.name, content.read()


def _place(name: str) -> str | None:
    base = PurePosixPath(name).name
    if base.startswith(_FLAT):
        return base.removesuffix(".json").replace("_", "/")
    folder, _, file = name.rpartition("/")
    if file != "index.json":
        return None
    _, mark, tail = f"/{folder}".partition("/redfish")
    return f"{mark}{tail}" if mark else f"/redfish/v1/{folder}".rstrip("/")
