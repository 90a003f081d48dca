"""NVIDIA cards through NVML (the package nvidia-ml-py, whose module is `pynvml`)."""

from inventory.drivers.cards.nvml.source import NvmlCards

__all__ = ["NvmlCards"]
