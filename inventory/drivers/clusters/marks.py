"""Our mark in a node's reason: `sensaka:<id> <text>`, so that we lift only what we set. Pure.

Slurm has one reason a node, Kubernetes an annotation of ours. In Slurm a node that is down has a
reason of its own, which setting ours would wipe out; it is kept behind ours and put back when ours is
lifted.
"""

import re

_MARK = re.compile(r"^sensaka:([A-Za-z0-9_.-]{1,64})(?=\s|$)")
_OWNER = re.compile(r"^[A-Za-z0-9_.-]{1,64}$", re.ASCII)
_EARLIER = " | earlier: "
_LONGEST = 1000


def is_owner(owner: str) -> bool:
    """Whether the id can stand in a mark."""
    return _OWNER.match(owner) is not None


def owner_of(reason: str) -> str:
    """The id in a reason's mark, "" when the reason is not ours."""
    match = _MARK.match(reason)
    return match[1] if match else ""


def marked(owner: str, reason: str, earlier: str = "") -> str:
    """The reason to set. Double quotes end a reason for scontrol and line ends would break its output."""
    text = f"sensaka:{owner} {_plain(reason)}".strip()
    return f"{text}{_EARLIER}{_plain(earlier)}"[:_LONGEST] if earlier else text[:_LONGEST]


def earlier_of(reason: str) -> str:
    """The reason that ours stands before, "" when there was none."""
    return reason.partition(_EARLIER)[2] if owner_of(reason) else ""


def _plain(text: str) -> str:
    return " ".join(text.replace('"', "'").split())
