"""Samples in: the bare ASGI application for POST /api/v1/telemetry/, mounted before Django.

It takes Django's settings but none of its request cycle, which costs ten times as much a post.
"""

from inventory.ingest.application import TelemetryApplication, application

__all__ = ["TelemetryApplication", "application"]
