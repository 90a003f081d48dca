"""What may be asked for: the checks of a request before it is stored, and the pool and class that it gets."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import Q

from pools.models import Launch, Near, Pool, PriorityClass, Project, Spec
from sensaka.kernel.errors import Conflict, InvalidInput

MOST_UNITS = 10_000
SHORTEST, LONGEST = 60, 366 * 86_400  # s
LONGEST_SCRIPT = 1_000_000  # characters
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_IMAGE = re.compile(r"[\w.\-/:@+]+\Z", re.ASCII)
_UNPRINTABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be started: a script, a container image with its command, or nothing but the cards."""

    launch: str
    script: str = ""
    image: str = ""
    command: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    model: str = ""


def check_work(work: Work) -> None:
    """Raises InvalidInput with the field that no cluster could start."""
    if work.launch not in Launch.values:
        raise InvalidInput(f"launch is one of {', '.join(Launch.values)}", field="launch")
    for name in ("script", "image", "model"):
        if _UNPRINTABLE.search(getattr(work, name)):
            raise InvalidInput("it contains characters that can't be stored", field=name)
    if work.launch != Launch.SCRIPT and work.script:
        raise InvalidInput(f"a script is not started with launch {work.launch}", field="script")
    if work.launch != Launch.IMAGE and (work.image or work.command):
        raise InvalidInput(f"an image is not started with launch {work.launch}", field="image")
    if work.launch == Launch.SCRIPT:
        _check_script(work.script)
    if work.launch == Launch.IMAGE and not _IMAGE.match(work.image):
        raise InvalidInput("name the image as registry/name:tag", field="image")
    _check_environment(work.environment)


def _check_script(script: str) -> None:
    if not script.startswith("#!"):
        raise InvalidInput("begin the script with the line that names its interpreter: #!/bin/bash", field="script")
    if len(script) > LONGEST_SCRIPT:
        raise InvalidInput(f"a script has at most {LONGEST_SCRIPT:,} characters", field="script")


def _check_environment(environment: Mapping[str, str]) -> None:
    if len(environment) > 200:
        raise InvalidInput("at most 200 variables", field="environment")
    for name, value in environment.items():
        if not isinstance(name, str) or not _VARIABLE.match(name):
            raise InvalidInput(f"{name!r} is no name of a variable", field="environment")
        if not isinstance(value, str) or _UNPRINTABLE.search(value) or len(value) > 10_000:
            raise InvalidInput(f"{name}: a value is a text of at most 10,000 characters", field="environment")


def check_size(
    *, count: int, near: str, time_limit: int, not_before: datetime | None, pool: Pool, now: datetime
) -> None:
    """Raises InvalidInput with the field that the pool would never give."""
    if not 1 <= count <= MOST_UNITS:
        raise InvalidInput(f"ask for 1 to {MOST_UNITS:,} units", field="count")
    if near and near not in Near.values:
        raise InvalidInput(f"near is one of {', '.join(Near.values)}", field="near")
    longest = min(pool.longest_run or LONGEST, LONGEST)
    if not SHORTEST <= time_limit <= longest:
        raise InvalidInput(f"the time limit in {pool} is {SHORTEST:,} to {longest:,} seconds", field="time_limit")
    if not_before is not None and not_before > now + timedelta(days=366):
        raise InvalidInput("the start lies more than a year ahead", field="not_before")


def chosen_pool(spec: Spec, project: Project, pool: Pool | None) -> Pool:
    """The pool that was asked for, or the first in rank that offers the spec to the tenant.

    Raises InvalidInput where the pool doesn't offer it, and Conflict when no pool does now.
    """
    if not spec.active:
        raise Conflict(f"{spec} is no longer offered: choose another spec", field="spec")
    open_to = Q(tenants=None) | Q(tenants=project.tenant_id)
    offering = list(Pool.objects.filter(open_to, specs=spec).distinct().order_by("rank", "name"))
    if pool is not None and pool not in offering:
        raise InvalidInput(f"{pool} does not offer {spec} to {project.tenant}", field="pool")
    accepting = [one for one in offering if one.accepting and pool in (None, one)]
    if not accepting:
        raise Conflict(f"no pool takes requests for {spec} from {project.tenant} at present", field="spec")
    return accepting[0]


def chosen_priority(project: Project, priority: PriorityClass | None) -> PriorityClass:
    """The class that was asked with when it is open to the tenant, or the default.

    Raises InvalidInput where it isn't, and Conflict when none is named and none is the default.
    """
    if priority is None:
        default = PriorityClass.objects.filter(default=True).first()
        if default is None:
            raise Conflict("no priority class is the default: name one, or ask an operator to set it", field="priority")
        return default
    open_classes = PriorityClass.objects.filter(Q(tenants=None) | Q(tenants=project.tenant_id))
    if not open_classes.filter(pk=priority.pk).exists():
        raise InvalidInput(f"{priority} is not open to {project.tenant}", field="priority")
    return priority
