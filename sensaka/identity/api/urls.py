"""Addresses of accounts under /api/v1/."""

from rest_framework.routers import SimpleRouter

from sensaka.identity.api.tokens import ApiTokenViewSet

router = SimpleRouter(use_regex_path=False)
router.register("tokens", ApiTokenViewSet, basename="token")

urlpatterns = router.urls
