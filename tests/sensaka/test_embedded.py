"""Embedded PostgreSQL and Redis (X1)."""

from django.db import connection


def test_the_database_makes_time_ordered_identifiers(db: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT uuidv7() < uuidv7(), current_setting('server_version_num')::int >= 180000")
        assert cursor.fetchone() == (True, True)
