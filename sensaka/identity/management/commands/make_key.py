"""Print a fresh key for SENSAKA_SECRET_KEYS."""

from typing import Any

from cryptography.fernet import Fernet
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Print a fresh key for SENSAKA_SECRET_KEYS; put it first, keep the old ones behind it"
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(Fernet.generate_key().decode())
