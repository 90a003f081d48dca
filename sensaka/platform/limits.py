"""A bound on what one request may send, kept before Django writes the body to a temporary file.

Django's own limit (DATA_UPLOAD_MAX_MEMORY_SIZE) looks at a body only after all of it has been spooled, and
REST framework's parsers pass it by; anybody could fill the disk without signing in.
"""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

LARGEST_BODY = 2_500_000
"""Bytes; Django's own bound for forms. A node's report is below 1 MB, a form far below that."""


def limited(application: Application) -> Application:
    """`application` behind the bound: 413 for a longer body, announced or not."""

    async def bounded(scope: Scope, receive: Receive, send: Send) -> None:
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if not length.isdigit() or int(length) > LARGEST_BODY:
            await _refuse(send)
            return
        size, started, over = 0, False, False

        async def counted() -> MutableMapping[str, Any]:
            nonlocal size, over
            message = await receive()
            size += len(message.get("body", b""))
            over = over or size > LARGEST_BODY
            # to whoever reads the body it looks as if the client had gone: it cleans up and answers nothing
            return {"type": "http.disconnect"} if over else message

        async def noted(message: MutableMapping[str, Any]) -> None:
            nonlocal started
            started = True
            await send(message)

        await application(scope, counted, noted)
        if over and not started:
            await _refuse(send)

    return bounded


async def _refuse(send: Send) -> None:
    detail = f"a request's body has at most {LARGEST_BODY} bytes"
    problem = {"type": "about:blank", "title": "Too large", "status": 413, "code": "too_large", "detail": detail}
    body = json.dumps(problem).encode()
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),  # what is left of the body is not read
    ]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": body})
