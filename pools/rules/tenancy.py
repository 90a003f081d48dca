"""Who asks: tenants, projects, their quotas and what they used."""

from dataclasses import dataclass
from enum import StrEnum

from pools.rules.fleet import Id


class Resource(StrEnum):
    """What a quota limits, in the unit of its amounts."""

    HOURS = "hours"
    """GPU-hours in a period."""
    CARDS = "cards"
    """Cards at once, shares as fractions; of one model or of all."""
    MEMORY = "memory"
    """Bytes of GPU memory at once."""
    TOKENS = "tokens"
    """Tokens in a period, from recorded usage."""
    STORAGE = "storage"
    """Bytes stored, from recorded usage."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """An organisation's unit. Tenants of one `cohort` lend to each other; None lends to nobody.

    `weight` is its part in fair share, `usage` its decayed card-seconds (`ordering.decayed`).
    """

    id: Id
    name: str = ""
    cohort: Id | None = None
    weight: float = 1.0
    usage: float = 0.0


@dataclass(frozen=True, slots=True)
class Project:
    """A part of a tenant. Its quotas borrow from the other projects of the tenant."""

    id: Id
    tenant: Id
    name: str = ""


@dataclass(frozen=True, slots=True)
class Quota:
    """One limit of a tenant or project (`holder`).

    `nominal` is its own. `borrowing` is how much more it may take of what others of its cohort don't
    use (0: nothing; None: all there is), `lending` how much of its own others may take (None: all).
    `model` narrows CARDS and HOURS to one card model. `used` is what the period recorded up to `now`
    for HOURS and TOKENS, or what is stored for STORAGE; CARDS and MEMORY are counted from what runs.
    """

    holder: Id
    resource: Resource
    nominal: float
    borrowing: float | None = 0
    lending: float | None = None
    model: str | None = None
    period_start: int | None = None
    period_end: int | None = None
    used: float = 0.0
