"""What the log says when a service behind us is away: one line, not a hundred.

PostgreSQL or Redis that restarts meets every task and request under way at once. Where they were in
our code at that moment explains nothing, and the traces would bury the line that does.
"""

import logging

import psycopg
from billiard.exceptions import WorkerLostError
from django.db import InterfaceError, OperationalError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

# PostgreSQL, appendix A: class 08 is "connection exception", 57P01 to 57P03 are a server that ends, crashed, starts.
_GONE = ("08", "57P01", "57P02", "57P03")


def database_away(error: BaseException) -> bool:
    """Whether the connection to the database was lost or could not be made; not for an error of a statement."""
    if isinstance(error, InterfaceError | psycopg.InterfaceError):
        return "closed" in str(error)
    if not isinstance(error, OperationalError | psycopg.OperationalError):
        return False
    cause = error if isinstance(error, psycopg.Error) else error.__cause__
    state = cause.sqlstate if isinstance(cause, psycopg.Error) else None
    return state is None or state.startswith(_GONE)


def service_away(error: BaseException) -> bool:
    """The same for Redis, and for a worker process that was killed from outside."""
    # billiard wraps what it passes between processes
    plain = getattr(error, "exc", error)
    return isinstance(plain, RedisConnectionError | RedisTimeoutError | WorkerLostError) or database_away(plain)


class WithoutTrace(logging.Filter):
    """Replaces the trace of such an error by its own first line."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and service_away(error):
            said, reason = record.getMessage().strip(), str(getattr(error, "exc", error)).strip().split("\n", 1)[0]
            record.msg, record.args = (said if reason in said else f"{said}: {reason}"), None
            record.exc_info = record.exc_text = None
        return True
