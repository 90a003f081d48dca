"""Abstract bases of every model."""

from django.db import models

from sensaka.platform.fields import UuidV7


class Record(models.Model):
    """A row with a UUIDv7 identifier made by PostgreSQL and its times in UTC."""

    id = models.UUIDField(primary_key=True, db_default=UuidV7(), editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True
