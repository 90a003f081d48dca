"""The Celery application. Its settings are Django's CELERY_*; its rhythm is in schedule.py."""

import os

from celery import Celery

from sensaka.schedule import BEAT_SCHEDULE

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sensaka.settings.dev")

app = Celery("sensaka")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.beat_schedule = BEAT_SCHEDULE
app.autodiscover_tasks()
