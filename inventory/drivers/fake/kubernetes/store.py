"""Objects with one counter of versions over all of them, their history, and pages of lists.

An object is replaced and never changed in place: a list's snapshot is a list of references.
"""

import base64
import binascii
import json
import secrets
import threading
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from inventory.drivers.fake.kubernetes import answers
from inventory.drivers.fake.kubernetes.kinds import KINDS, Kind

Object = dict[str, Any]
Key = tuple[str, str]  # namespace, name
_MOST_SNAPSHOTS = 32
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(slots=True)
class Entry:
    """One version of an object, with its JSON without kind and apiVersion, as lists give it."""

    value: Object
    raw: bytes


@dataclass(frozen=True, slots=True)
class Event:
    """One change, as watches tell it."""

    version: int
    type: str
    kind: Kind
    entry: Entry


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list."""

    entries: list[Entry]
    version: int
    token: str
    remaining: int


def timestamp(at: datetime | None = None) -> str:
    """A time as the API writes it."""
    return (at or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Store:
    """All objects. Every method may be called from any thread; `changed` is told of each change."""

    def __init__(self, *, history: int = 10_000) -> None:
        self.lock = threading.RLock()
        self.version = 100
        self.changed: list[Callable[[], None]] = []
        self._objects: dict[Kind, dict[Key, Entry]] = {kind: {} for kind in KINDS.values()}
        self._events: deque[Event] = deque(maxlen=history)
        self._forgotten = self.version
        self._snapshots: OrderedDict[str, tuple[int, list[Entry]]] = OrderedDict()

    def find(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """An object, not to be changed; None when there is none."""
        with self.lock:
            entry = self._objects[kind].get((namespace, name))
            return entry.value if entry else None

    def entry(self, kind: Kind, namespace: str, name: str) -> Entry:
        """An object's present version; Refused (404) when there is none."""
        with self.lock:
            entry = self._objects[kind].get((namespace, name))
        if entry is None:
            raise answers.not_found(kind.plural, name)
        return entry

    def all(self, kind: Kind, namespace: str = "") -> list[Object]:
        """All objects of a kind, not to be changed."""
        with self.lock:
            found = self._objects[kind].items()
            return [entry.value for (place, _), entry in found if not namespace or place == namespace]

    def create(self, kind: Kind, value: Object, *, uid: str = "", at: str = "") -> Object:
        """Keeps a new object under a new UID and version; who simulates a history gives UID and time of creation."""
        with self.lock:
            meta = dict(value.get("metadata", {}))
            if not meta.get("name") and meta.get("generateName"):
                meta["name"] = meta["generateName"] + "".join(secrets.choice(_SUFFIX) for _ in range(5))
            key = (meta.get("namespace", ""), meta["name"])
            if key in self._objects[kind]:
                raise answers.exists(kind, meta["name"])
            meta |= {"uid": uid or str(uuid.uuid4()), "creationTimestamp": at or timestamp()}
            return self._put(kind, key, {**value, "metadata": meta}, "ADDED")

    def replace(self, kind: Kind, value: Object) -> Object:
        """Keeps a new version of an object that is there."""
        with self.lock:
            meta = value["metadata"]
            return self._put(kind, (meta.get("namespace", ""), meta["name"]), value, "MODIFIED")

    def change(self, kind: Kind, namespace: str, name: str, edit: Callable[[Object], None]) -> Object | None:
        """Edits a copy of an object and keeps it; nothing happens when there is none or it stays as it was."""
        with self.lock:
            entry = self._objects[kind].get((namespace, name))
            if entry is None:
                return None
            value: Object = json.loads(entry.raw)
            edit(value)
            return entry.value if value == entry.value else self.replace(kind, value)

    def remove(self, kind: Kind, namespace: str, name: str) -> None:
        """Forgets an object."""
        with self.lock:
            entry = self._objects[kind].pop((namespace, name), None)
            if entry is not None:
                value = {**entry.value, "metadata": {**entry.value["metadata"], "resourceVersion": self._next()}}
                self._tell("DELETED", kind, Entry(value, msgspec.json.encode(value)))

    def dump(self) -> dict[str, list[Object]]:
        """All objects by the plural of their kind, to be restored in another process."""
        with self.lock:
            return {kind.plural: [entry.value for entry in found.values()] for kind, found in self._objects.items()}

    def restore(self, objects: Mapping[str, list[Object]], version: int) -> None:
        """Takes over dumped objects; versions go on from `version`, and who knew earlier ones is told so (410)."""
        with self.lock:
            for kind in self._objects:
                for value in objects.get(kind.plural, ()):
                    meta = value["metadata"]
                    self._put(kind, (meta.get("namespace", ""), meta["name"]), value, "ADDED")
            self.version = max(self.version, version)
            self.forget()

    def _next(self) -> str:
        self.version += 1
        return str(self.version)

    def _put(self, kind: Kind, key: Key, value: Object, event: str) -> Object:
        kept = {name: part for name, part in value.items() if name not in ("kind", "apiVersion")}
        kept["metadata"] = {**kept["metadata"], "resourceVersion": self._next()}
        entry = Entry(kept, msgspec.json.encode(kept))
        self._objects[kind][key] = entry
        self._tell(event, kind, entry)
        return kept

    def _tell(self, event: str, kind: Kind, entry: Entry) -> None:
        if len(self._events) == self._events.maxlen:
            self._forgotten = self._events[0].version
        self._events.append(Event(self.version, event, kind, entry))
        for listener in self.changed:
            listener()

    def forget(self) -> None:
        """Throws away all history and all snapshots, as etcd's compaction does."""
        with self.lock:
            self._events.clear()
            self._snapshots.clear()
            self._forgotten = self.version

    def events_after(self, version: int) -> Iterator[Event]:
        """Events after a version; Refused (410) when they are no longer kept."""
        with self.lock:
            if version < self._forgotten:
                raise answers.expired(version, self._forgotten)
            found: list[Event] = []
            for event in reversed(self._events):
                if event.version <= version:
                    break
                found.append(event)
        return reversed(found)

    def page(self, kind: Kind, match: Callable[[Object], bool], namespace: str, limit: int, token: str) -> Page:
        """One page of a list, all pages of one version; Refused (410) when that is no longer kept."""
        with self.lock:
            if token:
                name, start = _opened(token)
                if name not in self._snapshots:
                    raise answers.expired(0, self._forgotten)
                version, entries = self._snapshots[name]
            else:
                name, start, version = secrets.token_hex(8), 0, self.version
                chosen = sorted(self._objects[kind].items())
                entries = [one for (place, _), one in chosen if not namespace or place == namespace]
                entries = [one for one in entries if match(one.value)]
            if not limit or start + limit >= len(entries):
                return Page(entries[start:], version, "", 0)
            self._snapshots[name] = (version, entries)
            while len(self._snapshots) > _MOST_SNAPSHOTS:
                self._snapshots.popitem(last=False)
        end = start + limit
        told = base64.urlsafe_b64encode(f"{name}:{end}".encode()).decode()
        return Page(entries[start:end], version, told, len(entries) - end)


def _opened(token: str) -> tuple[str, int]:
    try:
        name, _, start = base64.urlsafe_b64decode(token).decode().partition(":")
        return name, int(start)
    except (binascii.Error, ValueError) as error:
        raise answers.Refused(400, "BadRequest", "continue key is not valid") from error
