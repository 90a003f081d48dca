"""How far the ledger has followed the jobs of the inventory."""

from django.db import models

from sensaka.platform.models import Record


class LedgerMark(Record):
    """The one row that says up to which change of jobs the ledger is written, and by which mapping rules."""

    one = models.BooleanField(default=True, unique=True, editable=False)
    jobs_until = models.DateTimeField(null=True, blank=True, help_text="Latest `updated_at` of a job that was read")
    rules = models.CharField(max_length=32, blank=True, help_text="Digest of the mapping rules that were applied")

    def __str__(self) -> str:
        return f"jobs until {self.jobs_until}"
