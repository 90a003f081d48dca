"""What the browser is told about our pages, and where a sign-in leads (X3, U6)."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.test import Client
from django.urls import reverse

from inventory.models import Credential, Site
from sensaka.identity.models import Role, User
from sensaka.platform.headers import POLICY
from tests.sensaka.pages import seed


@pytest.fixture
def operator(db: None) -> User:
    return User.objects.create_user(username="operator", password=seed.PASSWORD, role=Role.OPERATOR)


@pytest.mark.parametrize("path", ["/sign-in/", "/", "/settings/places/", "/api/docs/", "/api/v1/sites/", "/nothing/"])
def test_every_answer_says_what_may_run(operator: User, client: Client, path: str) -> None:
    if path != "/sign-in/":
        client.force_login(operator)
    answer = client.get(path)
    assert answer["Content-Security-Policy"] == POLICY
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Referrer-Policy"] == "same-origin"
    assert "no-store" in answer["Cache-Control"]


def test_no_page_has_a_script_of_its_own(operator: User, client: Client) -> None:
    """The policy forbids inline scripts, so none may be written."""
    client.force_login(operator)
    for path in ("/", "/fleet/map/", "/api/docs/", "/account/tokens/", "/collectors/add/bmc/"):
        page = client.get(path).content.decode()
        for script in page.split("<script")[1:]:
            tag, _, rest = script.partition(">")
            assert "src=" in tag or 'type="application/json"' in tag, (path, script[:200])
            assert "src=" not in tag or rest.lstrip().startswith("</script"), path
        assert " onclick=" not in page


TARGETS = ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)", "https:evil.example"]


@pytest.mark.parametrize("target", TARGETS)
def test_a_sign_in_leads_to_no_foreign_page(operator: User, client: Client, target: str) -> None:
    body = {"username": "operator", "password": seed.PASSWORD, "next": target}
    answer = client.post(f"{reverse('sign-in')}?next={target}", body)
    assert (answer.status_code, answer["Location"]) == (302, "/")


@pytest.mark.parametrize("target", TARGETS)
def test_a_saved_form_leads_to_no_foreign_page(operator: User, client: Client, target: str) -> None:
    client.force_login(operator)
    answer = client.post(reverse("place-add", args=["site"]) + f"?next={target}", {
        "name": "B", "kind": "edge", "time_zone": "UTC"})  # fmt: skip
    assert (answer.status_code, answer["Location"]) == (302, reverse("places"))


FORMS = [
    "sign-in", "sign-out", "enrol-bmc", "enrol-exporter", "enrol-agent", "credential-add", "user-add", "tokens",
    "profile",
]  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_a_form_without_its_token_is_refused(operator: User, name: str) -> None:
    client = Client(enforce_csrf_checks=True)
    if name != "sign-in":
        client.force_login(operator)
    assert client.post(reverse(name), {"username": "operator", "password": seed.PASSWORD}).status_code == 403


def production(**changes: str) -> dict[str, Any]:
    """The settings of production that matter here, from a process of its own."""
    names = [
        "SESSION_COOKIE_SECURE", "SESSION_COOKIE_HTTPONLY", "SESSION_COOKIE_SAMESITE", "CSRF_COOKIE_SECURE", "DEBUG",
        "SECURE_SSL_REDIRECT", "SECURE_HSTS_SECONDS", "X_FRAME_OPTIONS", "AXES_FAILURE_LIMIT", "ALLOWED_HOSTS",
    ]  # fmt: skip
    show = f"print(json.dumps({{name: getattr(production, name) for name in {names}}}))"
    code = f"import json; from sensaka.settings import production; {show}"
    environment = {
        "PATH": os.environ["PATH"], "SENSAKA_VAR": os.environ["SENSAKA_VAR"], "SECRET_KEY": "k" * 50,
        "SENSAKA_SECRET_KEYS": Fernet.generate_key().decode(), "DATABASE_URL": "postgresql://u:p@h/d",
        "REDIS_URL": "redis://h/0", **changes,
    }  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1]}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_production_keeps_its_cookies_to_https() -> None:
    found = production()
    flags = ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SECURE_SSL_REDIRECT", "SESSION_COOKIE_HTTPONLY")
    assert [found[name] for name in flags] == [True] * 4
    assert found["SESSION_COOKIE_SAMESITE"] == "Lax"
    assert found["SECURE_HSTS_SECONDS"] == 31_536_000
    assert not found["DEBUG"]
    assert "*" not in found["ALLOWED_HOSTS"]
    assert found["AXES_FAILURE_LIMIT"] == 10


@pytest.mark.parametrize(("name", "value"), [("SECRET_KEY", "short"), ("SENSAKA_SECRET_KEYS", "no-key")])
def test_production_does_not_start_with_a_bad_secret_and_does_not_print_it(name: str, value: str) -> None:
    error = production(**{name: value})["error"]
    assert name in error
    assert value not in error


SECRET = "s3cr3t-of-the-bmc"


def test_a_stored_password_is_in_no_answer(operator: User, client: Client) -> None:
    client.force_login(operator)
    row = Credential.objects.create(name="racks", username="root", password=SECRET)
    Site.objects.create(name="S")
    said = [client.get(path).content.decode() for path in (
        "/api/v1/credentials/", f"/api/v1/credentials/{row.pk}/", "/settings/credentials/",
        f"/settings/credentials/{row.pk}/", "/collectors/add/bmc/", "/metrics", "/journal/")]  # fmt: skip
    made = client.post(
        "/api/v1/credentials/", json.dumps({"name": "n", "username": "u", "password": SECRET}), "application/json"
    )
    assert made.status_code == 201
    changed = client.patch(f"/api/v1/credentials/{row.pk}/", json.dumps({"password": SECRET}), "application/json")
    again = client.post(reverse("credential-add"), {"name": "", "username": "u", "password": SECRET})
    for answer in (*said, made.content.decode(), changed.content.decode(), again.content.decode(), repr(row), str(row)):
        assert SECRET not in answer


def test_a_log_in_inside_an_exporters_address_is_refused(operator: User, client: Client) -> None:
    client.force_login(operator)
    site = Site.objects.create(name="S")
    for url in (f"http://root:{SECRET}@10.0.0.1/metrics", "file:///etc/passwd", "ftp://10.0.0.1/", "gopher://a/",
                "http://169.254.169.254/latest/meta-data/", "http://[::ffff:169.254.169.254]/", "http://[fe80::1%25e0]/",
                "http://0.0.0.0:9400/", "http://224.0.0.1/", "http://h ost/", "http://h\n/"):  # fmt: skip
        body = {"url": url, "site": str(site.pk)}
        answer = client.post("/api/v1/exporters/", json.dumps(body), "application/json")
        assert answer.status_code in (400, 422), url
        assert SECRET not in answer.content.decode()
        page = client.post(reverse("enrol-exporter"), {"url": url, "site": str(site.pk), "interval": "30"})
        assert page.status_code == 200, url
    good = client.post("/api/v1/exporters/", json.dumps({"url": "http://n01:9400/metrics", "site": str(site.pk)}),
                       "application/json")  # fmt: skip
    assert good.status_code == 201
    answer = client.patch(
        f"/api/v1/exporters/{good.json()['id']}/", json.dumps({"url": "ftp://x/"}), "application/json"
    )
    assert answer.status_code == 422
