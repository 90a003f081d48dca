"""Fixtures of the clusters' tests."""

from tests.inventory.clusters.building import opener

__all__ = ["opener"]
