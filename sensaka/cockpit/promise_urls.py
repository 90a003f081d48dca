"""Addresses of what people ask for and hold: the catalogue, requests, the queue, the ledger."""

from django.urls import path

from sensaka.cockpit.views import extensions, holdings, offers, queue, work

urlpatterns = [
    path("request/", offers.catalogue, name="offers"),
    path("request/<uuid:spec_id>/", offers.ask, name="ask"),
    path("request/<uuid:spec_id>/expected/", offers.expected, name="ask-expected"),
    path("my-work/", work.work, name="my-work"),
    path("requests/<uuid:request_id>/", work.one, name="request"),
    path("requests/<uuid:request_id>/parts/<slug:part>/", work.part, name="request-part"),
    path("requests/<uuid:request_id>/acts/<slug:name>/", work.act, name="request-act"),
    path("requests/<uuid:request_id>/move/", queue.move, name="request-move"),
    path("extensions/", extensions.extensions, name="extensions"),
    path("extensions/<uuid:extension_id>/<slug:name>/", extensions.decision, name="extension-decision"),
    path("capacity/queue/", queue.queue, name="queue"),
    path("capacity/allocations/", holdings.allocations, name="allocations"),
    path("capacity/allocations/timeline/", holdings.timeline, name="allocations-timeline"),
    path("capacity/allocations/<uuid:allocation_id>/", holdings.allocation, name="allocation"),
]
