"""The Celery application. Its settings are Django's CELERY_*; its rhythm is in schedule.py."""

import os
import signal
import warnings

from celery import Celery
from celery.platforms import SecurityWarning
from celery.signals import worker_process_init
from kombu.transport.redis import Channel

from sensaka.embedded import arm_death_signal
from sensaka.schedule import BEAT_SCHEDULE

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sensaka.settings.dev")

# The embedded mode may run as root (see the supervisor), and tasks are told by JSON, not by pickle.
warnings.filterwarnings("ignore", category=SecurityWarning)
# A lost broker must not end a poll halfway: it runs on, and its lease keeps others from its work.
warnings.filterwarnings("ignore", message=r"\nIn Celery 5\.1 we introduced an optional breaking change")

# A worker that loses Redis tries to give its messages back to it at once, fails inside, and ends (kombu 5.7). Nobody
# needs them: the next ticks come two seconds later.
Channel.do_restore = False

app = Celery("sensaka")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.beat_schedule = BEAT_SCHEDULE
app.autodiscover_tasks()


@worker_process_init.connect  # type: ignore[untyped-decorator] # celery has no types
def end_with_the_worker(**_: object) -> None:
    """A pool process whose worker was killed would finish its poll and wait for ever; leases make its end safe."""
    arm_death_signal(signal.SIGKILL)
