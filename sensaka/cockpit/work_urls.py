"""Addresses of what schedulers run: clusters, jobs, and the nodes that were taken out."""

from django.urls import path

from sensaka.cockpit.views import clusters, cordons, job_export, jobs

urlpatterns = [
    path("clusters/", clusters.clusters, name="clusters"),
    path("clusters/<uuid:cluster_id>/", clusters.cluster, name="cluster"),
    path("clusters/<uuid:cluster_id>/timeline/", clusters.cluster_timeline, name="cluster-timeline"),
    path("clusters/<uuid:cluster_id>/parts/<slug:part>/", clusters.cluster_part, name="cluster-part"),
    path("jobs/", jobs.jobs, name="jobs"),
    path("jobs.csv", job_export.jobs_csv, name="jobs-csv"),
    path("jobs/<uuid:job_id>/", jobs.job, name="job"),
    path("jobs/<uuid:job_id>/history/", jobs.history, name="job-history"),
    path("jobs/<uuid:job_id>/parts/<slug:part>/", jobs.job_part, name="job-part"),
    path("cordons/", cordons.cordons, name="cordons"),
]
