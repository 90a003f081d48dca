"""The ASGI application: telemetry before Django, the live line beside it, Django for the rest."""

import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from channels.auth import AuthMiddlewareStack
from channels.security.websocket import AllowedHostsOriginValidator
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sensaka.settings.dev")
django_application = get_asgi_application()

from inventory import ingest  # noqa: E402 - models must not be imported before Django is set up
from sensaka.live.consumer import LiveConsumer  # noqa: E402
from sensaka.platform.limits import limited  # noqa: E402

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

TELEMETRY = "/api/v1/telemetry/"
pages: Any = limited(django_application)  # type: ignore[arg-type] # asgiref's types differ in name only
live: Any = AllowedHostsOriginValidator(AuthMiddlewareStack(LiveConsumer.as_asgi()))


async def _no_such_socket(send: Send) -> None:
    await send({"type": "websocket.close", "code": 4404})


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Route by kind and path. An unknown WebSocket is closed, not an error in the log."""
    kind = scope["type"]
    if kind == "http":
        handler: Any = ingest.application if scope["path"] == TELEMETRY else pages
        await handler(scope, receive, send)
    elif kind == "websocket":
        if scope["path"] == "/ws/live/":
            await live(scope, receive, send)
        else:
            await _no_such_socket(send)
    elif kind == "lifespan":
        await _lifespan(receive, send)


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.shutdown":
            await ingest.application.close()  # what waits is stored and the agents' last posts are written down
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
