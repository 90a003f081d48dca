"""Model fields: identifiers from PostgreSQL and secrets encrypted at rest."""

from functools import lru_cache
from typing import Any
from uuid import UUID

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, models
from django.db.models import Func, UUIDField


class UuidV7(Func):
    """PostgreSQL 18's uuidv7(): ordered by time, so indexes stay dense."""

    function = "uuidv7"
    arity = 0
    output_field = UUIDField()


def new_ids(number: int) -> list[UUID]:
    """Identifiers for rows that are written in bulk and named by others in the same breath; one query."""
    if number <= 0:
        return []
    with connection.cursor() as cursor:
        cursor.execute("SELECT uuidv7() FROM generate_series(1, %s)", [number])
        return [key for (key,) in cursor.fetchall()]


@lru_cache(maxsize=4)
def _cipher(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])


def cipher() -> MultiFernet:
    """The cipher over SENSAKA_SECRET_KEYS: the first key encrypts, all of them decrypt (rotation)."""
    return _cipher(tuple(settings.FIELD_ENCRYPTION_KEYS))


class EncryptedTextField(models.TextField):  # type: ignore[type-arg] # not generic at run time
    """Text that is stored as Fernet ciphertext and read back in clear. It can't be searched."""

    def get_prep_value(self, value: Any) -> Any:
        if value is None or value == "":
            return value
        return cipher().encrypt(str(value).encode()).decode()

    def from_db_value(self, value: str | None, expression: object, connection: object) -> str | None:
        if not value:
            return value
        try:
            return cipher().decrypt(value.encode()).decode()
        except InvalidToken:
            raise ImproperlyConfigured(
                "a stored secret can't be decrypted: put the key it was written with back into SENSAKA_SECRET_KEYS"
            ) from None
