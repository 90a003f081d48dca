"""Keys of stored secrets: rotation, loss, and what of them could be seen from outside (X3)."""

from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from django.conf import LazySettings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from inventory.models import Credential
from inventory.observations import BmcTarget
from sensaka import embedded

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()


def stored() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT password FROM inventory_credential")
        row = cursor.fetchone()
    assert row is not None
    return str(row[0])


def test_a_new_key_encrypts_and_the_old_one_still_reads(db: None, settings: LazySettings) -> None:
    settings.FIELD_ENCRYPTION_KEYS = [OLD]
    row = Credential.objects.create(name="racks", username="root", password="s3cr3t")
    assert "s3cr3t" not in stored()
    settings.FIELD_ENCRYPTION_KEYS = [NEW, OLD]
    row = Credential.objects.get(pk=row.pk)
    assert row.password == "s3cr3t"
    row.save()
    assert Fernet(NEW).decrypt(stored()) == b"s3cr3t"
    settings.FIELD_ENCRYPTION_KEYS = [NEW]
    assert Credential.objects.get(pk=row.pk).password == "s3cr3t"


def test_a_lost_key_is_named_and_nothing_of_the_secret_is(db: None, settings: LazySettings) -> None:
    settings.FIELD_ENCRYPTION_KEYS = [OLD]
    Credential.objects.create(name="racks", username="root", password="s3cr3t")
    settings.FIELD_ENCRYPTION_KEYS = [NEW]
    with pytest.raises(ImproperlyConfigured, match="SENSAKA_SECRET_KEYS") as refused:
        Credential.objects.get()
    assert stored() not in str(refused.value)


def test_a_target_does_not_print_its_password() -> None:
    target = BmcTarget(address="10.0.0.1", port=443, protocol="redfish", username="root", password="s3cr3t")
    assert "s3cr3t" not in f"{target} {target!r} {[target]}"


def test_the_keys_of_an_installation_are_its_users_alone(tmp_path: Path) -> None:
    made = embedded.secrets(tmp_path)
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
    for name in ("secret_key", "encryption_key"):
        assert (tmp_path / "secrets" / name).stat().st_mode & 0o777 == 0o600
    assert embedded.secrets(tmp_path) == made
    assert made.secret_key not in repr(made)
    assert made.encryption_key not in repr(made)
