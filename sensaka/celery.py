"""The Celery application. Its settings are Django's CELERY_*; its rhythm is in schedule.py."""

import os
import warnings

from celery import Celery
from celery.platforms import SecurityWarning

from sensaka.schedule import BEAT_SCHEDULE

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sensaka.settings.dev")

# The embedded mode may run as root (see the supervisor), and tasks are told by JSON, not by pickle.
warnings.filterwarnings("ignore", category=SecurityWarning)
# A lost broker must not end a poll halfway: it runs on, and its lease keeps others from its work.
warnings.filterwarnings("ignore", message=r"\nIn Celery 5\.1 we introduced an optional breaking change")

app = Celery("sensaka")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.beat_schedule = BEAT_SCHEDULE
app.autodiscover_tasks()
