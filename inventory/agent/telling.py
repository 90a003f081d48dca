"""Says a recurring trouble once a minute, with how often it came in between."""

import logging

from inventory.agent.clock import Clock

EVERY = 60.0  # s


class Teller:
    """Keeps one time and one count for each topic; there are a handful of topics."""

    def __init__(self, log: logging.Logger, clock: Clock) -> None:
        self._log, self._clock = log, clock
        self._told: dict[str, tuple[float, int]] = {}

    def warning(self, topic: str, message: str, *args: object) -> None:
        """Logs at WARNING unless `topic` was told less than a minute ago."""
        self._say(logging.WARNING, topic, message, args)

    def error(self, topic: str, message: str, *args: object) -> None:
        """Logs at ERROR unless `topic` was told less than a minute ago."""
        self._say(logging.ERROR, topic, message, args)

    def _say(self, level: int, topic: str, message: str, args: tuple[object, ...]) -> None:
        now = self._clock.monotonic()
        at, silent = self._told.get(topic, (-EVERY, 0))
        if now - at < EVERY:
            self._told[topic] = (at, silent + 1)
            return
        self._told[topic] = (now, 0)
        suffix = f" [{silent} times more since the last line]" if silent else ""
        self._log.log(level, message + suffix, *args)
