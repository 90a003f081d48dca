"""The JWT that slurmrestd asks for: who it is, when it ends, how to get the next one."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from inventory.drivers.clusters.tokens import expires_at

Renew = Callable[[], Awaitable[str]]


class Login:
    """A user's name and token. `renew` gives a new token; without it an ended one is a failure."""

    def __init__(self, user: str, token: str, renew: Renew | None = None) -> None:
        self.user = user
        self._token = token
        self._renew = renew

    def __repr__(self) -> str:
        return f"Login({self.user})"

    @property
    def expires_at(self) -> datetime | None:
        """When the present token ends."""
        return expires_at(self._token)

    @property
    def ended(self) -> bool:
        """Whether the present token has ended by our clock."""
        end = self.expires_at
        return end is not None and end <= datetime.now(UTC)

    def headers(self, user: str = "") -> dict[str, str]:
        """The headers of a request, on behalf of another user if one is named."""
        return {"X-SLURM-USER-NAME": user or self.user, "X-SLURM-USER-TOKEN": self._token}

    async def renewed(self) -> bool:
        """Fetches a new token; False when there is no way to, or it gave the same or nothing."""
        if self._renew is None:
            return False
        token = (await self._renew()).strip()
        if not token or token == self._token:
            return False
        self._token = token
        return True
