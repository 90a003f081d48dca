"""What a database error means: is the database in trouble, or one statement at fault?"""

import psycopg
from django.db import InterfaceError, OperationalError

# PostgreSQL, appendix A: class 40 is "transaction rollback" (deadlocks, serialization failures), 55P03 a lock that was
# not to be had in time, 57014 a statement that took too long. psycopg calls all of them operational.
_ROLLED_BACK = "40"
_OF_A_STATEMENT = (_ROLLED_BACK, "55P03", "57014")


def in_trouble(error: BaseException) -> bool:
    """Whether whoever asks next would meet the same: the database is away, full, out of memory.

    False for what one statement did: values that don't fit, a row that is there already, a deadlock, a slow query.
    """
    if not isinstance(error, OperationalError | InterfaceError | psycopg.OperationalError | psycopg.InterfaceError):
        return False
    return not _state(error).startswith(_OF_A_STATEMENT)


def rolled_back(error: BaseException) -> bool:
    """Whether others got in the way, so that the same transaction may succeed when it is begun again."""
    return _state(error).startswith(_ROLLED_BACK)


def _state(error: BaseException) -> str:
    """The SQLSTATE, of Django's errors and of psycopg's own; empty where there is none."""
    cause = error if isinstance(error, psycopg.Error) else error.__cause__
    return (cause.sqlstate or "") if isinstance(cause, psycopg.Error) else ""
