"""Bring the shipped accelerator models into the database."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from inventory.catalogue import CatalogueError
from inventory.services.catalogue import load_catalogue


class Command(BaseCommand):
    help = "Bring the shipped accelerator models into the database. Repeatable; never changes a site's own rows."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            result = load_catalogue()
        except CatalogueError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"catalogue: {result.created} created, {result.updated} updated, {result.unchanged} unchanged, "
            f"{result.kept} of the site's own kept"
        )
