"""A WebSocket to an ASGI application in the same event loop."""

from typing import Any

from asgiref.testing import ApplicationCommunicator


class Line(ApplicationCommunicator):
    """What a browser does: open, send text, receive text, close."""

    def __init__(self, application: Any, user: Any = None, session: Any = None) -> None:
        self.scope = {"type": "websocket", "path": "/ws/live/", "headers": [], "subprotocols": [], "user": user}
        if session is not None:
            self.scope["session"] = session
        super().__init__(application, self.scope)

    async def open(self) -> dict[str, Any]:
        await self.send_input({"type": "websocket.connect"})
        answer: dict[str, Any] = await self.receive_output(5)
        return answer

    async def say(self, text: str) -> None:
        await self.send_input({"type": "websocket.receive", "text": text})

    async def close(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(5)
