"""Pages of jobs: filters, paging, what a run tells, words (P13)."""

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient, Client
from django.urls import reverse

from inventory.models import ClusterConnection, Job, JobCard, JobNode
from inventory.rules.job_words import clock, exit_words, reason_words
from sensaka.cockpit import job_acts
from sensaka.live import snapshots
from sensaka.live.topics import Topic
from tests.sensaka.pages import seed, work_seed
from tests.sensaka.pages.work_reading import html, shown


def test_filters_leave_the_right_jobs(work: work_seed.Work, steering: Client) -> None:
    node, card = work.made.nodes["a01-gpu01"], work.cards_of("a01-gpu01")[3]
    assert shown(steering, node=str(node.pk), state="running") == ["90214", "90233", "90210"]
    assert shown(steering, node="A01-GPU01", state="running") == ["90214", "90233", "90210"]
    assert shown(steering, card=str(card.pk), state="open") == ["90214"]
    assert shown(steering, cards="unknown") == ["90231"]
    assert shown(steering, user="petra", state="open") == ["90231"]
    assert shown(steering, account="graphics") == ["90231"]
    assert shown(steering, queue="debug") == []
    assert shown(steering, state="timeout") == ["90101"]
    assert shown(steering, q="sweep", state="waiting") == ["90220_4"]
    assert set(shown(steering, q="90250")) == {"90250"}
    assert "90120" not in shown(steering, span="1h")
    since, until = work.now - timedelta(hours=6.5), work.now - timedelta(hours=5.8)
    assert "90120" in shown(steering, since=since.isoformat(), until=until.isoformat())


@pytest.mark.parametrize(
    "query",
    [
        {"node": "no-such-node"}, {"node": str(seed.missing_id())}, {"card": "nonsense"}, {"cluster": "nonsense"},
    ],
)  # fmt: skip
def test_what_is_not_there_has_no_jobs(work: work_seed.Work, steering: Client, query: dict[str, str]) -> None:
    """A node that is misspelt must not show the jobs of all nodes."""
    assert shown(steering, **query) == []


def test_unreadable_filters_are_left_out(work: work_seed.Work, steering: Client) -> None:
    everything = shown(steering)
    for query in ({"state": "odd"}, {"span": "9y"}, {"since": "yesterday"}, {"before": "x_y"}, {"cards": "maybe"}):
        assert shown(steering, **query) == everything
    assert steering.get(reverse("jobs"), {"q": "a\x00b", "user": "\x00"}).status_code == 200


def test_pages_of_jobs_follow_one_another_without_gap_or_repetition(work: work_seed.Work, steering: Client) -> None:
    work_seed._ended(work, 70)
    seen: list[Any] = []
    query: dict[str, str] = {}
    for _ in range(10):
        context = steering.get(reverse("jobs"), query).context
        seen += [job.pk for job in context["jobs"]]
        if not context["older"]:
            break
        query = {"before": context["older"]}
    assert len(seen) == len(set(seen)) == Job.objects.count()


def test_a_link_s_filters_are_chips_that_can_be_taken_off(work: work_seed.Work, steering: Client) -> None:
    card = work.cards_of("a01-gpu01")[0]
    answer = steering.get(reverse("jobs"), {"card": str(card.pk), "state": "open", "before": "2020-01-01_x"})
    (chip, address), *rest = answer.context["chips"]
    assert (chip.text, rest) == (f"Card {card.slot} on a01-gpu01", [])
    assert address == f"{reverse('jobs')}?state=open"


def test_a_job_tells_times_reason_places_and_gpu_time(work: work_seed.Work, steering: Client) -> None:
    job = work.jobs["90214"]
    page = html(steering, reverse("job", args=[job.pk]))
    for card in (*work.cards_of("a01-gpu01")[3:5], *work.cards_of("a01-gpu02")[:2]):
        assert reverse("card", args=[card.pk]) in page
    cells = dict(snapshots.snapshot(Topic("job", job.pk)))
    assert cells["job.waited"].text == "00:05:00"
    assert job.started_at is not None
    hours = (work.now - job.started_at).total_seconds() * 4 / 3600
    assert abs(float(cells["job.gpu"].text.split("\u202f")[0]) - hours) < 0.2
    over = html(steering, reverse("job", args=[work.jobs["90104"].pk]))
    assert "Ended by SIGKILL (9)" in over
    assert "It used more memory than it asked for." in over
    steps = html(steering, reverse("job", args=[work.jobs["90120"].pk]))
    assert "train.py" in steps
    assert "Exit code 0: well" in steps


def test_cards_that_are_unknown_are_said_to_be_and_lost_runs_too(work: work_seed.Work, steering: Client) -> None:
    page = html(steering, reverse("job", args=[work.jobs["90231"].pk]))
    assert "Cards unknown." in page
    assert "The scheduler says 2 cards, but not which." in page
    assert "They are not guessed." in page
    assert reverse("card", args=[work.cards_of("a01-gpu02")[5].pk]) not in page
    lost = html(steering, reverse("job", args=[work.jobs["90111"].pk]))
    assert "This run was lost" in lost
    assert "Cards unknown (2)" in html(steering, f"{reverse('jobs')}?cards=unknown")


def test_requeues_stand_beside_one_another(work: work_seed.Work, steering: Client) -> None:
    first, second = Job.objects.filter(job_id="90250").order_by("submitted_at")
    page = html(steering, reverse("job", args=[second.pk]))
    assert reverse("job", args=[first.pk]) in page
    assert "same job" in page
    assert "Requeued" in page


def test_what_a_card_did_while_the_job_ran(work: work_seed.Work, steering: Client) -> None:
    """Gaps are null; busy, idle and unknown add up to the time that it ran."""
    job = work.jobs["90210"]
    held = JobCard.objects.get(job=job)
    body = steering.get(reverse("job-history", args=[job.pk]), {"held": str(held.pk)}).json()
    assert job.started_at is not None
    assert body["start"] == int(job.started_at.timestamp())
    ran = body["end"] - body["start"]
    assert abs(body["busy"] + body["idle"] + body["unknown"] - ran) <= body["resolution"]
    assert None in body["activity"]  # samples cover the last hour only
    assert any(value for value in body["activity"] if value is not None)
    assert body["busy"] > 3000
    other = reverse("job-history", args=[work.jobs["90214"].pk])
    assert steering.get(other, {"held": str(held.pk)}).status_code == 404


@async_to_sync
async def loaded(client: AsyncClient, work: work_seed.Work, **query: str) -> list[str]:
    """The lines of the file, as the ASGI server that runs the product sends them."""
    await client.aforce_login(work.made.users["operator"])
    answer: Any = await client.get(reverse("jobs-csv"), query)
    return b"".join([piece async for piece in answer.streaming_content]).decode().splitlines()


def test_jobs_as_a_file_are_the_rows_of_the_filters(work: work_seed.Work, async_client: AsyncClient) -> None:
    lines = loaded(async_client, work, user="petra", state="open")
    assert [line.split(",")[3] for line in lines] == ["job_id", "90231"]
    row = dict(zip(lines[0].split(","), lines[1].split(","), strict=True))
    assert (row["cards"], row["cards_known"], row["cards_held"], row["nodes"]) == ("2", "no", "", "a01-gpu02")


def test_acts_follow_state_and_capability(work: work_seed.Work) -> None:
    def acts(job_id: str) -> dict[str, str]:
        job = Job.objects.select_related("cluster__connection").get(pk=work.jobs[job_id].pk)
        return {act.name: act.why_not for act in job_acts.possible(job)}

    assert set(acts("90214")) == {"suspend", "signal", "requeue", "cancel"}
    assert acts("90214")["suspend"].startswith("slurmrestd has no such call")
    assert acts("90214")["cancel"] == ""
    assert set(acts("90240")) == {"hold", "cancel"}
    assert set(acts("90242")) == {"release", "cancel"}
    assert acts("90101") == {}
    ClusterConnection.objects.filter(pk=work.connections["central"].pk).update(enabled=False)
    assert acts("90240") == dict.fromkeys(("hold", "cancel"), "The connection to its cluster is switched off.")


@pytest.mark.parametrize(
    ("scheduler", "reason", "words"),
    [
        ("slurm", "None", ""),
        ("slurm", "Priority", "Jobs of higher priority are ahead of it."),
        ("slurm", "ReqNodeNotAvail, May be reserved", "A node that it needs is not available: May be reserved."),
        ("slurm", "QOSMaxGRESPerUser", "A limit of its quality of service is reached (QOSMaxGRESPerUser)."),
        ("slurm", "AssocGrpGRES", "A limit of its account is reached (AssocGrpGRES)."),
        ("slurm", "SomethingNew", "SomethingNew"),
        ("kubernetes", "Unschedulable: 0/3 nodes are available", "No node has room for it now."),
        ("kubernetes", "Priority", "Priority"),
    ],
)  # fmt: skip
def test_reasons_are_sentences_where_they_are_known(scheduler: str, reason: str, words: str) -> None:
    assert reason_words(scheduler, reason) == words


def test_ends_and_lengths_in_words() -> None:
    assert exit_words(None, None) == ""
    assert exit_words(0, None) == "Exit code 0: well"
    assert exit_words(137, None) == "Exit code 137: ended by SIGKILL"
    assert exit_words(0, 15) == "Ended by SIGTERM (15)"
    assert exit_words(200, None) == "Exit code 200"
    assert [clock(value) for value in (None, 59, 3600, 90061)] == ["", "00:00:59", "01:00:00", "1-01:01:01"]


def test_places_of_a_job_are_its_nodes_with_and_without_cards(work: work_seed.Work, steering: Client) -> None:
    job = work.jobs["90214"]
    JobNode.objects.create(job=job, node=work.made.nodes["a02-gpu01"])
    page = html(steering, reverse("job-part", args=[job.pk, "facts"]))
    assert page.index("a01-gpu01") < page.index("a01-gpu02") < page.index("a02-gpu01")
    assert "no cards" in page
