"""Make the accounts of a new installation, with generated passwords.

Without --demo: one operator, `admin`. With --demo: an operator and an auditor, and a token for the
simulated fleet in var/secrets/fleet_token. The passwords of the demo are kept in var/secrets
(mode 0600), so that a later start can print them again; those of a real installation are printed
once and kept nowhere.
"""

import json
import os
from argparse import ArgumentParser
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import transaction
from django.utils import timezone

from sensaka.identity.models import ApiToken, Role, Scope, User
from sensaka.identity.services import create_token, create_user_with_generated_password, generated_password

_DEMO = ((Role.OPERATOR, "operator"), (Role.AUDITOR, "auditor"))


class Command(BaseCommand):
    help = "Make the first accounts with generated passwords"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--demo", action="store_true", help="the demo's accounts and its fleet's token")
        parser.add_argument("--reset", action="store_true", help="a new password for admin")
        parser.add_argument("--json", action="store_true", help="print the log-ins as one JSON line")

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        logins = self._demo() if options["demo"] else self._first_operator(reset=options["reset"])
        if options["json"]:
            self.stdout.write(json.dumps(logins))
            return
        for login in logins:
            self.stdout.write(f"{login['username']}  {login['password']}  ({login['role']})")

    def _first_operator(self, *, reset: bool) -> list[dict[str, str]]:
        known = User.objects.filter(username="admin").first()
        if known is not None and reset:
            password = generated_password()
            known.set_password(password)
            known.is_active, known.role = True, Role.OPERATOR
            known.save()
        elif User.objects.filter(role=Role.OPERATOR).exists():
            return []
        else:
            _user, password = create_user_with_generated_password(username="admin", role=Role.OPERATOR)
        return [{"username": "admin", "password": password, "role": "operator"}]

    def _demo(self) -> list[dict[str, str]]:
        path = self._secrets() / "demo_logins.json"
        logins: list[dict[str, str]] = json.loads(path.read_text()) if path.exists() else []
        known = set(User.objects.values_list("username", flat=True))
        if not logins or any(login["username"] not in known for login in logins):
            User.objects.filter(username__in=[name for _role, name in _DEMO]).delete()
            logins = []
            for role, name in _DEMO:
                _user, password = create_user_with_generated_password(username=name, role=role)
                logins.append({"username": name, "password": password, "role": str(role)})
            _write_private(path, json.dumps(logins))
        self._fleet_token()
        return logins

    def _fleet_token(self) -> None:
        """The fleet gets a fresh token at each start; the one before ends."""
        operator = User.objects.get(username="operator")
        ApiToken.objects.filter(user=operator, name="simulated fleet").delete()
        _row, token = create_token(
            user=operator, name="simulated fleet", scope=Scope.WRITE, expires_at=timezone.now() + timedelta(days=30)
        )
        _write_private(self._secrets() / "fleet_token", token)

    def _secrets(self) -> Path:
        folder = Path(settings.VAR_DIR) / "secrets"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder


def _write_private(path: Path, text: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(text)
