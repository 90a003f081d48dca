"""A database whose rows are committed, for what works on connections of its own."""

from collections.abc import Iterator

import pytest
from django.db import connection


@pytest.fixture
def committed(transactional_db: None) -> Iterator[None]:
    """What a test writes is seen by every connection; the tables that Django does not know are emptied afterwards."""
    yield
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE inventory_sample, inventory_late")
