"""Fixtures of the pages of pools."""

from tests.steady import steady_frame

__all__ = ["steady_frame"]
