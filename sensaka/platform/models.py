"""Abstract bases of every model."""

from django.conf import settings
from django.db import models

from sensaka.platform.fields import EncryptedTextField, UuidV7


class Record(models.Model):
    """A row with a UUIDv7 identifier made by PostgreSQL and its times in UTC."""

    id = models.UUIDField(primary_key=True, db_default=UuidV7(), editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True


class IdempotencyRecord(Record):
    """One POST that carried an Idempotency-Key, and its answer (encrypted: it may hold a secret)."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    body = EncryptedTextField(blank=True)

    class Meta:
        constraints = [models.UniqueConstraint("user", "key", name="idempotency_key_once")]
        indexes = [models.Index(fields=["created_at"])]

    def __str__(self) -> str:
        return self.key
