"""Addresses of the inventory's own pages: adding sources, acting on collectors, settings."""

from django.urls import path

from inventory.views import collectors, connections, cordons, enrolment, jobs, settings

urlpatterns = [
    path("collectors/add/", enrolment.enrol, name="enrol"),
    path("collectors/add/bmc/", enrolment.enrol_bmc, name="enrol-bmc"),
    path("collectors/add/exporter/", enrolment.enrol_exporter, name="enrol-exporter"),
    path("collectors/add/agent/", enrolment.enrol_agent, name="enrol-agent"),
    path("collectors/discoveries/<uuid:discovery_id>/", enrolment.discovery_page, name="discovery"),
    path("collectors/<slug:kind>/<uuid:source_id>/delete/", collectors.delete, name="collector-delete"),
    path("collectors/<slug:kind>/<uuid:source_id>/<slug:name>/", collectors.act, name="collector-act"),
    path("clusters/connect/", connections.connect, name="cluster-connect"),
    path("clusters/<uuid:cluster_id>/connection/", connections.edit, name="connection-edit"),
    path("clusters/<uuid:cluster_id>/connection/delete/", connections.delete, name="connection-delete"),
    path("clusters/<uuid:cluster_id>/connection/<slug:name>/", connections.act, name="connection-act"),
    path("cordons/<uuid:node_id>/<slug:name>/", cordons.act, name="cordon-act"),
    path("jobs/<uuid:job_id>/acts/<slug:name>/", jobs.act, name="job-act"),
    path("settings/places/", settings.places, name="places"),
    path("settings/places/<slug:kind>/add/", settings.place_add, name="place-add"),
    path("settings/places/<slug:kind>/<uuid:place_id>/", settings.place_edit, name="place-edit"),
    path("settings/places/<slug:kind>/<uuid:place_id>/delete/", settings.place_delete, name="place-delete"),
    path("settings/credentials/", settings.credentials, name="credentials"),
    path("settings/credentials/add/", settings.credential_add, name="credential-add"),
    path("settings/credentials/<uuid:credential_id>/", settings.credential_edit, name="credential-edit"),
    path("settings/credentials/<uuid:credential_id>/delete/", settings.credential_delete, name="credential-delete"),
    path("settings/models/", settings.card_models, name="card-models"),
    path("settings/models/add/", settings.card_model_add, name="card-model-add"),
    path("settings/models/<uuid:model_id>/", settings.card_model_edit, name="card-model-edit"),
    path("settings/thresholds/", settings.thresholds, name="thresholds"),
    path("settings/thresholds/add/", settings.threshold_add, name="threshold-add"),
    path("settings/thresholds/<uuid:threshold_id>/", settings.threshold_edit, name="threshold-edit"),
    path("settings/thresholds/<uuid:threshold_id>/delete/", settings.threshold_delete, name="threshold-delete"),
]
