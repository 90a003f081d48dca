"""Fetching resources and whole collections, with failures kept as data.

`$expand` is used where the service advertises it and given up where it lies: answers 200 with bare
links, or fails. Pages are followed until they end, lead in a circle, or are too many.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from inventory.drivers.bmc.redfish.client import RedfishClient
from inventory.drivers.bmc.redfish.failures import FailureList, RedfishError
from inventory.drivers.bmc.redfish.resources import Resource, dig, entries_in, number, path_of, pick, same
from inventory.drivers.bmc.redfish.session import Login
from inventory.observations import FailureKind, ReadFailure

_MOST_PAGES = 100
_MOST_MEMBERS = 5000
_EXPAND_STRIKES = 2  # collections on which $expand may fail before it is not tried any more
_EXPAND_SHARE = 0.4  # of the remaining time: a service that chokes on $expand still answers without
_MISSING = frozenset({404, 405, 410, 501})


@dataclass(slots=True)
class Collection:
    """Members that could be read; `complete` is False when some could not."""

    members: list[Resource] = field(default_factory=list)
    complete: bool = True


@dataclass(slots=True)
class _Pages:
    entries: list[Resource]
    complete: bool


def advertised_levels(root: Resource) -> int:
    """How deep `$expand=.` may go by the service root; 0 = not at all."""
    expand = dig(root, "ProtocolFeaturesSupported", "ExpandQuery")
    if not any(pick(expand, kind) is True for kind in ("NoLinks", "ExpandAll")):
        return 0
    levels = number(pick(expand, "MaxLevels"))
    deep = pick(expand, "Levels") is True
    return max(1, int(levels)) if deep and levels is not None else 1


class Reader:
    """Reads through one login. `levels` is how far `$expand` is trusted; it only falls.

    `broken` are members (comparable paths) that collections list and the service does not have; known
    ones are not asked for again.
    """

    def __init__(self, client: RedfishClient, login: Login, failures: FailureList, *, levels: int) -> None:
        self.levels = levels
        self.broken: set[str] = set()
        self.client = client
        self.failures = failures
        self._login = login
        self._strikes: Counter[int] = Counter()

    async def fetch(self, path: str, *, optional: bool = False) -> Resource | None:
        """The resource, or None with the failure kept; a missing one is no failure when `optional`."""
        if not path:
            return None
        try:
            return await self._login.get(path)
        except RedfishError as error:
            self._note(error, optional=optional)
            return None

    async def fetch_all(self, paths: Iterable[str], *, optional: bool = False) -> dict[str, Resource]:
        """Several at once, by comparable path; what failed is left out."""
        unique = {same(path): path for path in paths if path}
        found = await asyncio.gather(*(self.fetch(path, optional=optional) for path in unique.values()))
        return {key: resource for key, resource in zip(unique, found, strict=True) if resource is not None}

    async def _fetch_members(self, paths: list[str]) -> dict[str, Resource]:
        async def member(path: str) -> Resource | None:
            try:
                return await self._login.get(path)
            except RedfishError as error:
                self.failures.add(error.failure())
                if error.status == 404:
                    self.broken.add(same(path))
                return None

        found = await asyncio.gather(*map(member, paths))
        return {same(path): resource for path, resource in zip(paths, found, strict=True) if resource is not None}

    async def references(self, path: str, *, optional: bool = False) -> list[str] | None:
        """The paths of a collection's members, without reading them; None when it can't be read."""
        try:
            pages = await self._pages(path)
        except RedfishError as error:
            self._note(error, optional=optional)
            return None
        return [found for found in map(path_of, pages.entries) if found]

    async def members(self, path: str, *, levels: int = 1, optional: bool = False) -> Collection | None:
        """All members of a collection, in its order; None when the collection can't be read.

        With `levels` 2 the members' own subordinates come with them where the service can do that.
        """
        depth = min(levels, self.levels)
        pages: _Pages | None = None
        if depth:
            try:
                pages = await self._pages(path, expand=depth)
            except RedfishError as error:
                if error.status == 404:
                    self._note(error, optional=optional)
                    return None
                self._strike(depth)
            else:
                # Some members as bare links are broken members; all of them mean that it is not done.
                if pages.entries and not any(map(_is_whole, pages.entries)):
                    self._strike(depth)
        if pages is None:
            try:
                pages = await self._pages(path)
            except RedfishError as error:
                self._note(error, optional=optional)
                return None
        return await self._completed(pages)

    def _note(self, error: RedfishError, *, optional: bool) -> None:
        if not (optional and error.status in _MISSING):
            self.failures.add(error.failure())

    async def _completed(self, pages: _Pages) -> Collection:
        links = [path_of(entry) for entry in pages.entries if not _is_whole(entry)]
        fetched = await self._fetch_members([path for path in links if same(path) not in self.broken])
        result = Collection(complete=pages.complete)
        for entry in pages.entries:
            resource = entry if _is_whole(entry) else fetched.get(same(path_of(entry)))
            if resource is None or "error" in resource:
                result.complete = False
            else:
                result.members.append(resource)
        return result

    async def _pages(self, path: str, *, expand: int = 0) -> _Pages:
        query = "" if not expand else "$expand=." if expand == 1 else f"$expand=.($levels={expand})"
        page = f"{path}{'&' if '?' in path else '?'}{query}" if query else path
        visited: set[str] = set()
        entries: dict[str, Resource] = {}
        while page:
            if same(page) in visited or len(visited) >= _MOST_PAGES or len(entries) >= _MOST_MEMBERS:
                detail = "the pages lead in a circle" if same(page) in visited else "too many pages"
                self.failures.add(ReadFailure(what=path[:200], kind=FailureKind.PROTOCOL, detail=detail))
                return _Pages(list(entries.values()), complete=False)
            visited.add(same(page))
            try:
                body = await self._login.get(page, share=_EXPAND_SHARE if expand else 1.0)
            except RedfishError as error:
                if expand or len(visited) == 1:
                    raise
                self.failures.add(error.failure())
                return _Pages(list(entries.values()), complete=False)
            for entry in entries_in(pick(body, "Members")):
                entries.setdefault(same(path_of(entry)) or f"#{len(entries)}", entry)
            page = path_of(pick(body, "Members@odata.nextLink") or pick(body, "@odata.nextLink"))
        return _Pages(list(entries.values()), complete=True)

    def _strike(self, depth: int) -> None:
        self._strikes[depth] += 1
        if self._strikes[depth] >= _EXPAND_STRIKES:
            self.levels = min(self.levels, depth - 1)


def _is_whole(entry: Resource) -> bool:
    """Whether a member is the resource itself and not only a link or an excerpt of it."""
    return len(entry) > 3 and pick(entry, "Id") is not None and pick(entry, "@odata.type") is not None
