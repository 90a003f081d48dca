"""What the tests of clusters, jobs and cordons ask of a page."""

from django.db import connection as database
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from sensaka.cockpit import context
from sensaka.live import snapshots


def shown(client: Client, **query: str) -> list[str]:
    return [job.job_id for job in client.get(reverse("jobs"), query).context["jobs"]]


def html(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, address
    return answer.content.decode()


def queries(client: Client, address: str) -> int:
    snapshots.forget()
    context._simulated()  # the frame remembers it
    with CaptureQueriesContext(database) as found:
        assert client.get(address).status_code == 200
    return len(found)
