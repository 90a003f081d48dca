"""What can be made to go wrong, a request at a time, and what the server noted down for tests."""

from collections import Counter, deque
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase


class ExpandMode(StrEnum):
    """How `$expand` is answered by a service that advertises it; all but HONEST were met in the field."""

    HONEST = "honest"
    IGNORES = "ignores"
    REFUSES = "refuses"
    FAILS = "fails"


@dataclass(slots=True)
class Fault:
    """One thing wrong with the paths that match the shell pattern `path` and the queries that match `query`.

    `delay` (s) is waited first. Then at most one of: `hang` (no answer until the client goes),
    `disconnect` (connection dropped without an answer), `status` (an error answer), `truncate` (the
    body is cut after half its announced length), `body` (these bytes instead). `headers` go with
    `status` and `body`. `times` limits how often it strikes; None is always.
    """

    path: str = "*"
    method: str = "*"
    query: str = "*"
    delay: float = 0.0
    hang: bool = False
    disconnect: bool = False
    status: int | None = None
    truncate: bool = False
    body: bytes | None = None
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    times: int | None = None

    def strikes(self, method: str, path: str, query: str = "") -> bool:
        """Whether this fault applies now; counts down `times`."""
        if self.times == 0 or self.method not in ("*", method):
            return False
        if not fnmatchcase(path, self.path) or not fnmatchcase(query, self.query):
            return False
        if self.times is not None:
            self.times -= 1
        return True


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request as it came; `credentials` is none, basic, token or login (a session being opened)."""

    method: str
    path: str
    query: str
    credentials: str
    if_match: str
    status: int


@dataclass(slots=True)
class RequestLog:
    """Counts of everything, the last requests in full, and the most that were in flight at once."""

    recent: deque[LoggedRequest] = field(default_factory=lambda: deque(maxlen=10_000))
    counts: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    total: int = 0
    active: int = 0
    peak: int = 0
    connections: int = 0
    peak_connections: int = 0

    def begin(self) -> None:
        """A request has come in."""
        self.active += 1
        self.peak = max(self.peak, self.active)

    def end(self, request: LoggedRequest) -> None:
        """It was answered, or given up (status 0)."""
        self.active -= 1
        self.total += 1
        self.recent.append(request)
        self.counts[f"{request.method} {request.path}"] += 1
        self.statuses[request.status] += 1

    @property
    def saw_credentials(self) -> bool:
        """Whether any request carried a password or a token."""
        return any(request.credentials != "none" for request in self.recent)

    def clear(self) -> None:
        """Starts counting anew; connections that are open stay counted."""
        self.recent.clear()
        self.counts.clear()
        self.statuses.clear()
        self.total = 0
        self.peak = self.active
        self.peak_connections = self.connections
