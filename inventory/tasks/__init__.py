"""What runs by the clock. Each module is imported here so that the workers find its tasks."""

from inventory.tasks import clusters, collecting, samples

__all__ = ["clusters", "collecting", "samples"]
