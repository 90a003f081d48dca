"""Paths in the tree as text: `<site>/<cluster or none>/<rack or none>/<node>`, or the beginning of one."""

from uuid import UUID

LEVELS = ("site", "cluster", "rack", "node", "card")
Path = tuple[UUID | None, ...]


def parse(text: str) -> Path | None:
    """`<site>/<cluster or none>/<rack or none>/<node>` or its beginning; None when it is no such path."""
    parts: list[UUID | None] = []
    for part in filter(None, text.split("/")):
        try:
            parts.append(None if part == "none" else UUID(part))
        except ValueError:
            return None
    return tuple(parts) if len(parts) < len(LEVELS) else None


def written(path: Path) -> str:
    """The text that `parse` reads."""
    return "/".join(str(part or "none") for part in path)
