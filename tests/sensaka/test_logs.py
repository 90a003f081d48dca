"""A database or Redis that is away is one line of the log, and 503 to a program (X4)."""

import logging
import sys

import psycopg
import pytest
from billiard.exceptions import WorkerLostError
from django.db import InterfaceError, OperationalError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError

from sensaka.platform.logs import WithoutTrace, database_away, service_away
from sensaka.platform.rest.problems import problem_response


def django_error(cause: psycopg.Error) -> OperationalError:
    error = OperationalError(str(cause))
    error.__cause__ = cause
    return error


AWAY = {
    "refused": django_error(psycopg.OperationalError("connection refused\n\tIs the server running?")),
    "ended": django_error(psycopg.errors.AdminShutdown("terminating connection")),
    "starting": django_error(psycopg.errors.CannotConnectNow("the database system is starting up")),
    "plain": psycopg.errors.ConnectionFailure("gone"),
    "closed": InterfaceError("connection already closed"),
}
OURS = {
    "deadlock": django_error(psycopg.errors.DeadlockDetected("deadlock detected")),
    "cancelled": django_error(psycopg.errors.QueryCanceled("canceling statement")),
    "full": django_error(psycopg.errors.DiskFull("could not extend file")),
    "misuse": InterfaceError("cursor holds no result"),
    "value": ValueError("closed"),
}


@pytest.mark.parametrize("name", AWAY)
def test_a_lost_connection_is_known(name: str) -> None:
    assert database_away(AWAY[name])


@pytest.mark.parametrize("name", OURS)
def test_an_error_of_a_statement_is_not_taken_for_one(name: str) -> None:
    assert not service_away(OURS[name])


def record(error: Exception, message: str = "Task %s failed") -> logging.LogRecord:
    try:
        raise error
    except Exception:
        caught = sys.exc_info()
    made = logging.LogRecord("x", logging.ERROR, __file__, 1, message, ("t",), caught)
    assert WithoutTrace().filter(made)
    return made


def test_the_log_has_one_line_for_a_service_that_is_away() -> None:
    formatter = logging.Formatter("%(message)s")
    assert formatter.format(record(AWAY["refused"])) == "Task t failed: connection refused"
    assert formatter.format(record(RedisConnectionError("gone"))) == "Task t failed: gone"
    assert formatter.format(record(WorkerLostError("signal 9"))) == "Task t failed: signal 9"
    for error in (OURS["deadlock"], ResponseError("WRONGTYPE")):
        assert "Traceback" in formatter.format(record(error))


def test_a_program_is_told_to_come_again() -> None:
    answer = problem_response(AWAY["ended"], {})
    assert answer is not None
    assert (answer.status_code, answer.data["code"]) == (503, "unavailable")
    assert problem_response(OURS["deadlock"], {}) is None
