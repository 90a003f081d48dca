"""Requests on objects: rights, selection, creation, changes, parts. No sockets."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from inventory.drivers.fake.kubernetes import answers, services
from inventory.drivers.fake.kubernetes.admission import PODS, admitted
from inventory.drivers.fake.kubernetes.answers import Refused
from inventory.drivers.fake.kubernetes.kinds import KINDS, OPTIONAL_GROUPS, Kind, Target, target_of
from inventory.drivers.fake.kubernetes.patches import merged, record
from inventory.drivers.fake.kubernetes.rights import Account, verb_of
from inventory.drivers.fake.kubernetes.store import Entry, Event, Object, Store

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_PARTIAL = "as=PartialObjectMetadataList"
_SCALED = ("deployments", "statefulsets", "replicasets")
_VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.2", "platform": "linux/amd64"}


@dataclass(slots=True)
class Request:
    """One request, its body read."""

    method: str
    path: str
    query: dict[str, str]
    token: str = ""
    accept: str = ""
    content: str = ""
    body: bytes = b""


@dataclass(slots=True)
class Watch:
    """What a watch follows, from where, and for how long (s)."""

    kind: Kind
    namespace: str
    version: int
    seconds: float
    bookmarks: bool
    match: Callable[[Object], bool]

    def line(self, event: Event) -> bytes:
        """An event as a line of the stream."""
        return b'{"type":"%b","object":%b}\n' % (event.type.encode(), whole(self.kind, event.entry))

    def follows(self, event: Event) -> bool:
        """Whether an event is of this watch."""
        value = event.entry.value
        same = not self.namespace or value["metadata"].get("namespace") == self.namespace
        return event.kind is self.kind and same and self.match(value)

    def bookmark(self, version: int) -> bytes:
        """The line that says how far the stream is."""
        meta = {"resourceVersion": str(version)}
        value = {"kind": self.kind.kind, "apiVersion": self.kind.api_version, "metadata": meta}
        return msgspec.json.encode({"type": "BOOKMARK", "object": value}) + b"\n"


@dataclass(slots=True)
class Api:
    """The API of one cluster. `before` is called ahead of every request: others may act there."""

    store: Store
    accounts: dict[str, Account]  # by token
    groups: set[str] = field(default_factory=set)  # of the optional ones, those that are installed
    before: Callable[[Request], None] | None = None
    used: set[tuple[str, str, str]] = field(default_factory=set)  # rights: verb, group, resource

    def answer(self, request: Request) -> tuple[int, bytes] | Watch:
        """Status and body, or the watch to serve; Refused for a no."""
        if self.before is not None:
            self.before(request)
        account = self.accounts.get(request.token)
        if account is None:
            raise answers.unauthorized()
        if request.path == "/version":
            return 200, msgspec.json.encode(_VERSION)
        if request.path == _REVIEWS and request.method == "POST":
            return 201, _review(account, json.loads(request.body))
        if request.path.startswith("/apis/") and request.path.count("/") == 2:
            return 200, self._group(request.path.rpartition("/")[2])
        target = target_of(request.path)
        if target is None or (target.kind.group in OPTIONAL_GROUPS and target.kind.group not in self.groups):
            raise answers.no_such_path()
        watch = request.query.get("watch") in ("1", "true")
        verb = verb_of(request.method, target.kind, target.name, watch=watch)
        if not account.may(verb, target.kind.group, target.kind.plural, target.part, target.name):
            raise answers.forbidden(account.name, verb, target.kind, target.part, target.namespace)
        resource = f"{target.kind.plural}/{target.part}" if target.part else target.kind.plural
        self.used.add((verb, target.kind.group, resource))
        if watch:
            return self._watch(target, request)
        return getattr(self, f"_{request.method.lower()}")(target, request)  # type: ignore[no-any-return]

    def _group(self, name: str) -> bytes:
        known = {kind.group: kind.version for kind in KINDS.values() if kind.group}
        if name not in known or (name in OPTIONAL_GROUPS and name not in self.groups):
            raise answers.no_such_path()
        version = {"groupVersion": f"{name}/{known[name]}", "version": known[name]}
        return msgspec.json.encode({"kind": "APIGroup", "name": name, "preferredVersion": version})

    def _watch(self, target: Target, request: Request) -> Watch:
        query = request.query
        return Watch(
            kind=target.kind,
            namespace=target.namespace,
            version=int(query.get("resourceVersion") or self.store.version),
            seconds=float(query.get("timeoutSeconds") or 1800),
            bookmarks=query.get("allowWatchBookmarks") in ("1", "true"),
            match=selected(query),
        )

    def _get(self, target: Target, request: Request) -> tuple[int, bytes]:
        if not target.name:
            return 200, self._list(target, request)
        entry = self.store.entry(target.kind, target.namespace, target.name)
        if target.part == "scale" and target.kind.plural in _SCALED:
            return 200, _scale(entry.value)
        return 200, whole(target.kind, entry)

    def _list(self, target: Target, request: Request) -> bytes:
        query = request.query
        limit, token = int(query.get("limit") or 0), query.get("continue", "")
        page = self.store.page(target.kind, selected(query), target.namespace, limit, token)
        meta: dict[str, Any] = {"resourceVersion": str(page.version)}
        if page.token:
            meta |= {"continue": page.token, "remainingItemCount": page.remaining}
        partial = _PARTIAL in request.accept
        head = {"kind": "PartialObjectMetadataList" if partial else f"{target.kind.kind}List"}
        head["apiVersion"] = "meta.k8s.io/v1" if partial else target.kind.api_version
        opened = msgspec.json.encode({**head, "metadata": meta})[:-1]
        if partial:
            items = [msgspec.json.encode({"metadata": entry.value["metadata"]}) for entry in page.entries]
        else:
            items = [entry.raw for entry in page.entries]
        return opened + b',"items":[' + b",".join(items) + b"]}"

    def _post(self, target: Target, request: Request) -> tuple[int, bytes]:
        body = json.loads(request.body)
        if target.part == "eviction" and target.kind is PODS:
            pod = self.store.entry(PODS, target.namespace, target.name).value
            services.evict(self.store, pod, body.get("deleteOptions") or {})
            return 201, msgspec.json.encode({**answers.SUCCESS, "code": 201})
        if target.name:
            raise answers.no_such_path()
        body.setdefault("metadata", {})
        if target.kind.namespaced:
            body["metadata"]["namespace"] = target.namespace
        with self.store.lock:
            made = self.store.create(target.kind, admitted(self.store, target.kind, body))
            entry = self.store.entry(target.kind, target.namespace, made["metadata"]["name"])
        return 201, whole(target.kind, entry)

    def _put(self, target: Target, request: Request) -> tuple[int, bytes]:
        return self._changed(target, request, lambda value, body: body)

    def _patch(self, target: Target, request: Request) -> tuple[int, bytes]:
        if not request.content.startswith("application/merge-patch+json"):
            raise answers.Refused(415, "UnsupportedMediaType", "this stand-in takes merge patches only")
        return self._changed(target, request, merged)

    def _changed(
        self, target: Target, request: Request, change: Callable[[Object, Object], Object]
    ) -> tuple[int, bytes]:
        body = json.loads(request.body)
        kind, store = target.kind, self.store
        with store.lock:
            before = store.entry(kind, target.namespace, target.name).value
            wanted = body.get("metadata", {}).get("resourceVersion")
            if wanted and wanted != before["metadata"]["resourceVersion"]:
                raise answers.stale(kind, target.name)
            if target.part == "scale" and kind.plural in _SCALED:
                return 200, _scale(self._scaled(kind, before, body))
            after = change(json.loads(msgspec.json.encode(before)), body)
            self._keep(target, before, after)
            record(before, after, request.query.get("fieldManager", "unknown"))
            if after != before:
                store.replace(kind, after)
            return 200, whole(kind, store.entry(kind, target.namespace, target.name))

    @staticmethod
    def _keep(target: Target, before: Object, after: Object) -> None:
        """The status changes by its own path only, and by that nothing else does."""
        if target.part == "status":
            after["spec"] = before.get("spec", {})
        elif "status" in before:
            after["status"] = before["status"]
        for name in ("uid", "creationTimestamp", "resourceVersion"):
            after["metadata"][name] = before["metadata"][name]

    def _scaled(self, kind: Kind, before: Object, body: Object) -> Object:
        replicas = body["spec"]["replicas"]
        return self.store.replace(kind, {**before, "spec": {**before["spec"], "replicas": replicas}})

    def _delete(self, target: Target, request: Request) -> tuple[int, bytes]:
        value = self.store.entry(target.kind, target.namespace, target.name).value
        options = json.loads(request.body) if request.body else {}
        last = services.delete(self.store, target.kind, value, options)
        return 200, msgspec.json.encode({"kind": target.kind.kind, "apiVersion": target.kind.api_version, **last})


def whole(kind: Kind, entry: Entry) -> bytes:
    """An object with its kind, as it stands outside of a list."""
    head = msgspec.json.encode({"kind": kind.kind, "apiVersion": kind.api_version})
    return head[:-1] + b"," + entry.raw[1:]


def _scale(value: Object) -> bytes:
    meta = {key: value["metadata"][key] for key in ("name", "namespace", "uid", "resourceVersion")}
    replicas = value["spec"].get("replicas", 1)
    spec = {"replicas": replicas} if replicas else {}  # Go leaves a zero out
    return msgspec.json.encode({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta, "spec": spec})


def _review(account: Account, body: Object) -> bytes:
    asked = body["spec"]["resourceAttributes"]
    allowed = account.may(
        asked["verb"], asked.get("group", ""), asked["resource"], asked.get("subresource", ""), asked.get("name", "")
    )
    return msgspec.json.encode({**body, "status": {"allowed": allowed}})


def selected(query: dict[str, str]) -> Callable[[Object], bool]:
    """The selectors of a query as a test of objects; Refused (400) for a form that is not known here."""
    tests: list[tuple[str, bool, str, bool]] = []  # path, is a label, value, equal
    for name in ("fieldSelector", "labelSelector"):
        for part in filter(None, query.get(name, "").split(",")):
            path, sign, value = part.partition("!=") if "!=" in part else part.partition("=")
            if not sign:
                raise Refused(400, "BadRequest", f"this stand-in does not know the selector {part}")
            tests.append((path.strip(), name == "labelSelector", value.lstrip("="), sign == "="))

    def match(value: Object) -> bool:
        return all((_field(value, path, label) == wanted) is equal for path, label, wanted, equal in tests)

    return match


def _field(value: Object, path: str, label: bool) -> str:
    if label:
        return str(value["metadata"].get("labels", {}).get(path, ""))
    found: Any = value
    for part in path.split("."):
        found = found.get(part, {}) if isinstance(found, dict) else {}
    return found if isinstance(found, str) else ""


def now() -> float:
    """The clock that watches end by."""
    return time.monotonic()
