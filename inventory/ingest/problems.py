"""Refusals as application/problem+json (RFC 9457)."""

from collections.abc import Mapping

import msgspec

Headers = list[tuple[bytes, bytes]]


class Problem(Exception):
    """An answer other than 200. `code` is a stable slug; `extra` goes into the document beside it."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        extra: Mapping[str, object] | None = None,
        headers: Headers | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail
        self.extra, self.headers = extra or {}, headers or []

    def body(self) -> bytes:
        """The document."""
        title = _TITLES.get(self.status, "Refused")
        return msgspec.json.encode(
            {"type": "about:blank", "title": title, "status": self.status, "detail": self.detail, "code": self.code}
            | dict(self.extra)
        )


_TITLES = {
    400: "Bad request",
    401: "Unauthorized",
    405: "Method not allowed",
    409: "Conflict",
    413: "Content too large",
    415: "Unsupported media type",
    422: "Unprocessable content",
    500: "Internal error",
    503: "Service unavailable",
}


def unavailable(detail: str, *, retry_after: int, code: str = "unavailable") -> Problem:
    """503 with Retry-After in seconds: nothing was stored, the same post is welcome later."""
    return Problem(503, code, detail, headers=[(b"retry-after", str(retry_after).encode())])
