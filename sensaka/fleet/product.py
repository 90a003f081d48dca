"""The product's REST interface as an operator's script uses it: find by name, create once, change."""

import asyncio
import logging
import uuid
from typing import Any

import httpx

log = logging.getLogger("sensaka.fleet")

Row = dict[str, Any]
_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0)  # s between tries while the product does not answer
_SAY_EVERY = 15.0  # s


class Refused(RuntimeError):
    """The product answered, and it was no; the message carries its reason."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Product:
    """One server and one operator token. Everything waits until the server is there."""

    def __init__(self, server: str, token: str) -> None:
        self.server = server.rstrip("/")
        self._client = httpx.AsyncClient(
            base_url=f"{self.server}/api/v1/",
            headers={"Authorization": f"Token {token}", "Accept": "application/json"},
            timeout=20.0,
            trust_env=False,
            limits=httpx.Limits(max_connections=8, max_keepalive_connections=4, keepalive_expiry=4.0),
        )

    async def request(self, method: str, path: str, *, body: Row | None = None, params: Row | None = None) -> Any:
        """One call, repeated while the server is away or says 5xx or 429; the same key makes a POST safe to repeat.

        Raises Refused for any other answer than success.
        """
        headers = {"Idempotency-Key": str(uuid.uuid4())} if method == "POST" else {}
        silent_since: float | None = None
        loop = asyncio.get_running_loop()
        for attempt in range(1_000_000):
            try:
                answer = await self._client.request(method, path, json=body, params=params, headers=headers)
            except httpx.TransportError as error:
                trouble = f"{type(error).__name__}: {error}".rstrip(": ")
            else:
                if answer.status_code < 500 and answer.status_code not in (429, 409):
                    return self._result(answer, method, path)
                trouble = f"{answer.status_code} {_reason(answer)}"
            now = loop.time()
            if silent_since is None or now - silent_since >= _SAY_EVERY:
                silent_since = now
                log.info("waiting for %s (%s %s: %s)", self.server, method, path, trouble)
            await asyncio.sleep(_PAUSES[min(attempt, len(_PAUSES) - 1)])
        raise AssertionError("a million tries take weeks")

    @staticmethod
    def _result(answer: httpx.Response, method: str, path: str) -> Any:
        if answer.is_success:
            return answer.json() if answer.content else None
        raise Refused(answer.status_code, f"{method} {path}: {answer.status_code} {_reason(answer)}")

    async def all(self, resource: str, **filters: object) -> list[Row]:
        """Every row of a list, over all its pages."""
        rows: list[Row] = []
        page = await self.request("GET", f"{resource}/", params=dict(filters))
        while True:
            rows += page["results"]
            if not page.get("next"):
                return rows
            page = await self.request("GET", page["next"])

    async def find(self, resource: str, **filters: object) -> Row | None:
        """The first row that fits, or None."""
        page = await self.request("GET", f"{resource}/", params=dict(filters))
        return page["results"][0] if page["results"] else None

    async def create(self, resource: str, body: Row) -> Row:
        """A new row."""
        row: Row = await self.request("POST", f"{resource}/", body=body)
        return row

    async def ensure(self, resource: str, found_by: Row, **more: object) -> Row:
        """The row that `found_by` names, made when there is none."""
        return await self.find(resource, **found_by) or await self.create(resource, {**found_by, **more})

    async def change(self, resource: str, identifier: str, body: Row) -> Row:
        """Change what `body` names."""
        row: Row = await self.request("PATCH", f"{resource}/{identifier}/", body=body)
        return row

    async def close(self) -> None:
        """End the connections."""
        await self._client.aclose()


def _reason(answer: httpx.Response) -> str:
    """The product's own words, or the start of whatever came."""
    try:
        told = answer.json()
    except ValueError:
        return answer.text[:200].replace("\n", " ")
    if not isinstance(told, dict):
        return str(told)[:200]
    detail = told.get("detail") or told.get("title") or ""
    errors = told.get("errors")
    return f"{detail} {errors if errors else ''}".strip() or str(told)[:200]
