"""`$expand`, `$skip`, `$top` and pages over a tree, as DSP0266 describes them (section 7.3)."""

import re
from collections.abc import Mapping
from typing import cast

from inventory.drivers.fake.redfish.tree import RedfishTree, Resource

_EXPAND = re.compile(r"^([.*~])(?:\(\$levels=(\d+)\))?$")
_MOST_EXPANDED = 5000  # bounds one answer: a whole DGX tree has about that many resources


class QueryRefused(Exception):
    """The query can't be answered; `status` is what HTTP says."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def supported_levels(root: Resource | None) -> int:
    """How deep `$expand` may go by what the service root advertises; 0 = not at all."""
    features = (root or {}).get("ProtocolFeaturesSupported")
    expand = features.get("ExpandQuery") if isinstance(features, dict) else None
    if not isinstance(expand, dict) or not any(expand.get(kind) for kind in ("ExpandAll", "NoLinks", "Links")):
        return 0
    levels = expand.get("MaxLevels", 1)
    return levels if isinstance(levels, int) else 1


def expanded(tree: RedfishTree, resource: Resource, wanted: str, *, most_levels: int) -> Resource:
    """A copy of `resource` with its references replaced by what they refer to."""
    match = _EXPAND.match(wanted)
    if match is None:
        raise QueryRefused(400, f"$expand={wanted} is not understood")
    levels = int(match[2] or 1)
    if levels > most_levels:
        raise QueryRefused(400, f"$levels={levels} is more than {most_levels}")
    return cast(Resource, _Expansion(tree, match[1]).walk(resource, levels, in_links=False))


class _Expansion:
    def __init__(self, tree: RedfishTree, kind: str) -> None:
        self.tree, self.kind, self.left = tree, kind, _MOST_EXPANDED

    def walk(self, value: object, levels: int, *, in_links: bool) -> object:
        if isinstance(value, list):
            return [self.walk(item, levels, in_links=in_links) for item in value]
        if not isinstance(value, dict):
            return value
        if value.keys() == {"@odata.id"}:
            return self._follow(value, levels, in_links=in_links)
        return {
            key: self.walk(item, levels, in_links=in_links or key == "Links")
            if key != "Actions" and not key.startswith("@Redfish")
            else item
            for key, item in value.items()
        }

    def _follow(self, reference: Resource, levels: int, *, in_links: bool) -> object:
        wanted = self.kind == "*" or (self.kind == "~") == in_links
        path = reference["@odata.id"]
        if levels == 0 or not wanted or self.left <= 0 or not isinstance(path, str) or "#" in path:
            return reference
        found = self.tree.get(path.rstrip("/"))
        if found is None:
            return reference
        self.left -= 1
        return self.walk(found, levels - 1, in_links=False) if levels > 1 else found


def paged(path: str, resource: Resource, query: Mapping[str, str], *, page_size: int | None) -> Resource:
    """A collection cut to `$skip`/`$top` or to one page, with the link to the next."""
    members = resource.get("Members")
    if not isinstance(members, list):
        return resource
    skip, top = _number(query, "$skip", 0), _number(query, "$top", len(members))
    step = min(top, page_size or len(members))
    if skip == 0 and step >= len(members):
        return resource
    shown = members[skip : skip + step]
    page: Resource = {**resource, "Members": shown, "Members@odata.count": len(members)}
    more = skip + step < min(len(members), skip + top)
    if more:
        parts = [f"$skip={skip + step}"]
        if "$top" in query:
            parts.append(f"$top={top - step}")
        if "$expand" in query:
            parts.append(f"$expand={query['$expand']}")
        page["Members@odata.nextLink"] = f"{path}?{'&'.join(parts)}"
    return page


def _number(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name)
    if text is None:
        return default
    if not text.isdigit():
        raise QueryRefused(400, f"{name}={text} is not a number")
    return int(text)
