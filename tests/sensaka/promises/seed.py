"""Requests over the small fleet of the pages' tests: waiting with the reasons of a real plan, running, over."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from inventory.models import ClusterConnection
from pools.models import ClusterMode, Extension, Launch, Mode, PriorityClass, QuotaLimit, Request
from pools.services import extensions, requests
from pools.services.admission import admit
from pools.services.asking import Work
from pools.services.moving import Move, move_all
from tests.pools.seed import Promised
from tests.sensaka.pages.seed import Seeded

HOUR = 3600


@dataclass
class Asked:
    """What was made, by name."""

    requests: dict[str, Request] = field(default_factory=dict)
    extension: Extension | None = None

    def ids(self) -> dict[str, str]:
        """For addresses of pages."""
        assert self.extension is not None
        found = {f"request_{name.replace('-', '_')}": str(row.pk) for name, row in self.requests.items()}
        return {**found, "extension": str(self.extension.pk)}


def build(made: Seeded, promised: Promised) -> Asked:
    """The training pool's cluster is managed; `member` of Vision has work of every kind, Language waits beside."""
    cluster = made.nodes["a01-gpu01"].cluster
    assert cluster is not None
    ClusterMode.objects.create(cluster=cluster, mode=Mode.MANAGED)
    able = [{"capability": name, "available": True} for name in ("submit", "place")]
    ClusterConnection.objects.get_or_create(cluster=cluster, defaults={"scheduler": "slurm", "capabilities": able})
    own = QuotaLimit.objects.filter(quota__tenant=promised.tenants["Vision"])
    own.filter(resource="cards").update(nominal=64)
    own.filter(resource="memory").update(nominal=64 * 80 * 2**30)
    asked = Asked()
    now = timezone.now()
    member, operator = made.users["member"], made.users["operator"]

    def ask(name: str, spec: str, project: str, count: int, hours: float, **more: Any) -> Request:
        fields = {"launch": Launch.CARDS, "actor": member} | more
        work = Work(launch=fields.pop("launch"), script=fields.pop("script", ""), image=fields.pop("image", ""))
        row = requests.submit(
            project=promised.projects[project], spec=promised.specs[spec], work=work, time_limit=int(hours * HOUR),
            count=count, name=name, actor=fields.pop("actor"), **fields,
        )  # fmt: skip
        asked.requests[name] = row
        return row

    script = "#!/bin/bash\nsrun python finetune.py --epochs 4\n"
    ask("finetune-vit", "1 x H100", "Segmentation", 2, 6, launch=Launch.SCRIPT, script=script)
    admit(promised.pools["Training"])
    _start(asked.requests["finetune-vit"], timezone.now())
    asked.extension = extensions.ask_extension(
        asked.requests["finetune-vit"], seconds=2 * HOUR, justification="One more epoch for the paper", actor=member
    )
    urgent = PriorityClass.objects.create(name="deadline", value=50, price_factor="1.5")
    ask("pretrain-llm", "8 x H100", "Pre-training", 4, 48, actor=operator, priority=urgent)
    ask("segment-sweep", "8 x H100", "Segmentation", 2, 12)
    ask("track-eval", "1 x H100", "Tracking", 40, 2, launch=Launch.IMAGE, image="example.org/track/eval:3")
    ask("notebook", "1 x H100", "Segmentation", 5, 4)
    requests.hold(ask("ablation", "1 x H100", "Tracking", 2, 8, not_before=now + timedelta(hours=20)), actor=member)
    ask("too-early", "1 x H100", "Segmentation", 1, 1, held=True)
    requests.cancel(asked.requests["too-early"], actor=member, why="wrong spec")
    admit(promised.pools["Training"])
    for row in asked.requests.values():
        row.refresh_from_db()
    return asked


def _start(row: Request, now: datetime) -> None:
    """What happens once its cluster runs it."""
    row.refresh_from_db()
    assert row.state == "starting", row.reasons
    ends = {"started_at": now, "ends_at": now + timedelta(seconds=row.time_limit), "job_reference": "90300"}
    move_all([Move(row.pk, "starting", "launch", "Its cluster runs it.", row.attempt, ends)], now=now)
    row.refresh_from_db()
