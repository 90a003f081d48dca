"""The clock: which task looks for due work how often. Every task may also run at any other time."""

from celery.schedules import crontab

# A tick costs one short query when nothing is due; periods are seconds.
BEAT_SCHEDULE: dict[str, dict[str, object]] = {
    "poll-bmcs": {"task": "inventory.tasks.collecting.poll_bmcs", "schedule": 2.0, "options": {"expires": 2}},
    "scrape-exporters": {
        "task": "inventory.tasks.collecting.scrape_exporters",
        "schedule": 2.0,
        "options": {"expires": 2},
    },
    "run-discoveries": {
        "task": "inventory.tasks.collecting.run_discoveries",
        "schedule": 2.0,
        "options": {"expires": 2},
    },
    "sync-clusters": {"task": "inventory.tasks.clusters.sync_clusters", "schedule": 2.0, "options": {"expires": 2}},
    "carry-out-cordons": {
        "task": "inventory.tasks.clusters.carry_out_cordons",
        "schedule": 5.0,
        "options": {"expires": 5},
    },
    "record-ledger": {"task": "pools.tasks.record_ledger", "schedule": 2.0, "options": {"expires": 2}},
    "admit-requests": {"task": "pools.tasks.admit_requests", "schedule": 5.0, "options": {"expires": 5}},
    "look-through-queues": {
        "task": "pools.tasks.look_through_queues",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "launch-requests": {"task": "pools.tasks.launch_requests", "schedule": 2.0, "options": {"expires": 2}},
    "look-for-idle-cards": {
        "task": "pools.tasks.look_for_idle_cards",
        "schedule": 60.0,
        "options": {"expires": 60},
    },
    "mark-silent-agents": {
        "task": "inventory.tasks.collecting.mark_silent_agents",
        "schedule": 10.0,
        "options": {"expires": 10},
    },
    "roll-up": {"task": "inventory.tasks.samples.roll_up", "schedule": 60.0, "options": {"expires": 60}},
    "make-partitions": {
        "task": "inventory.tasks.samples.make_partitions",
        "schedule": crontab(minute="17", hour="*/6"),
    },
    "forget-old-work": {
        "task": "inventory.tasks.clusters.forget_old_work",
        "schedule": crontab(minute="47", hour="*/6"),
    },
}
