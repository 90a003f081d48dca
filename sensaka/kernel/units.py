"""Units at the edges. Inside Sensaka: percent 0-100, bytes, W, J, degrees C, MHz, seconds; absent is None."""

KIB, MIB, GIB = 1024, 1024**2, 1024**3


def mib_to_bytes(value: float | None) -> int | None:
    """MiB, as NVIDIA tools count memory, to bytes."""
    return None if value is None else round(value * MIB)


def milli(value: float | None) -> float | None:
    """mW, mJ or mV to the base unit."""
    return None if value is None else value / 1000


def ratio_to_percent(value: float | None) -> float | None:
    """0-1, as DCGM profiling fields count, to percent."""
    return None if value is None else value * 100


def plausible(value: float | None, low: float, high: float) -> float | None:
    """The value when it lies in [low, high], else None: a reading outside physics is no reading."""
    return value if value is not None and low <= value <= high else None
