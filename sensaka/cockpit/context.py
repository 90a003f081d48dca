"""What the frame of every page needs."""

from django.conf import settings
from django.http import HttpRequest


def frame(request: HttpRequest) -> dict[str, object]:
    """Whether the fleet is simulated, for the banner."""
    return {"simulated_fleet": settings.SIMULATED_FLEET, "version": settings.VERSION}
