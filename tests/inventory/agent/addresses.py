"""The addresses that agents talk to, where the product has them."""

from django.urls import include, path

urlpatterns = [path("api/v1/agents/", include("inventory.api.agents_urls"))]
