"""The Celery application. Its settings are Django's CELERY_*; its rhythm is in schedule.py."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sensaka.settings.dev")

app = Celery("sensaka")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
