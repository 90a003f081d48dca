"""Every address of the product."""

from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.permissions import IsAuthenticated

from sensaka.platform import probes

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", probes.healthz, name="healthz"),
    path("readyz", probes.readyz, name="readyz"),
    path("metrics", probes.metrics, name="metrics"),
    path("api/v1/", include("inventory.api.urls")),
    path("api/v1/", include("pools.api.urls")),
    path("api/v1/", include("sensaka.identity.api.urls")),
    path("api/schema/", SpectacularAPIView.as_view(permission_classes=[IsAuthenticated]), name="api-schema"),
    path(
        "api/docs/",
        SpectacularSwaggerSplitView.as_view(url_name="api-schema", permission_classes=[IsAuthenticated]),
        name="api-docs",
    ),
    path("", include("sensaka.cockpit.urls")),
    path("", include("sensaka.cockpit.work_urls")),
    path("", include("sensaka.cockpit.promise_urls")),
    path("", include("sensaka.cockpit.idle_urls")),
    path("", include("inventory.urls")),
    path("", include("pools.urls")),
]

handler403 = "sensaka.cockpit.views.errors.forbidden"
handler404 = "sensaka.cockpit.views.errors.not_found"
handler500 = "sensaka.cockpit.views.errors.broken"
