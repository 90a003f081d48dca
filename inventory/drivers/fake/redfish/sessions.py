"""Login sessions of one emulated service: a small fixed number of slots, as on real BMCs."""

import secrets
import time
from dataclasses import dataclass

Resource = dict[str, object]


@dataclass(slots=True)
class Session:
    """One open session; `used` is monotonic seconds."""

    number: int
    token: str
    username: str
    used: float


class SessionStore:
    """At most `limit` sessions, forgotten after `timeout` seconds without use."""

    def __init__(self, *, limit: int, timeout: float, collection: str) -> None:
        self.limit = limit
        self.timeout = timeout
        self.collection = collection.rstrip("/")
        self.opened = 0
        self._open: dict[int, Session] = {}

    @property
    def active(self) -> int:
        """How many sessions are open now."""
        self._expire()
        return len(self._open)

    def create(self, username: str) -> Session | None:
        """A new session, or None when every slot is taken."""
        self._expire()
        if len(self._open) >= self.limit:
            return None
        self.opened += 1
        session = Session(self.opened, secrets.token_hex(16), username, time.monotonic())
        self._open[session.number] = session
        return session

    def touch(self, token: str) -> bool:
        """Whether the token is good; using it keeps it alive."""
        self._expire()
        for session in self._open.values():
            if secrets.compare_digest(session.token.encode(), token.encode()):
                session.used = time.monotonic()
                return True
        return False

    def delete(self, path: str) -> bool:
        """Closes the session at this path; False when there is none."""
        tail = path.removeprefix(f"{self.collection}/")
        return tail.isdigit() and self._open.pop(int(tail), None) is not None

    def drop_all(self) -> None:
        """What a BMC does when it restarts: every token is void."""
        self._open.clear()

    def resource(self, path: str) -> Resource | None:
        """The collection or one member, as a GET shows them."""
        self._expire()
        if path == self.collection:
            members = [{"@odata.id": f"{self.collection}/{number}"} for number in self._open]
            return {
                "@odata.id": self.collection,
                "@odata.type": "#SessionCollection.SessionCollection",
                "Name": "Sessions",
                "Members": members,
                "Members@odata.count": len(members),
            }
        tail = path.removeprefix(f"{self.collection}/")
        session = self._open.get(int(tail)) if tail.isdigit() else None
        return self.describe(session) if session else None

    def describe(self, session: Session) -> Resource:
        """One session without its token."""
        return {
            "@odata.id": f"{self.collection}/{session.number}",
            "@odata.type": "#Session.v1_3_0.Session",
            "Id": str(session.number),
            "Name": "User Session",
            "UserName": session.username,
        }

    def _expire(self) -> None:
        oldest = time.monotonic() - self.timeout
        for number in [number for number, session in self._open.items() if session.used < oldest]:
            del self._open[number]
