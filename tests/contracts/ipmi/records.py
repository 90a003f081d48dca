"""Sensor data records made by hand for the tests."""


def full(
    name: bytes, *, number: int = 1, type_code: int = 1, unit: int = 1, m: int = 1, b: int = 0, exponents: int = 0,
    signed: bool = False, linearization: int = 0, readable: int = 0, limits: bytes = bytes(6), entity: int = 7,
    instance: int = 1, owner: int = 0x20, name_code: int = 0xC0, modifier: int = 0,
) -> bytes:  # fmt: skip
    """A full record. `limits` are UNR UC UNC LNR LC LNC as in the record; `readable` is their mask."""
    body = bytes((owner, 0, number, entity, instance, 0x7F, 0x68, type_code, 0x01)) + bytes(4)
    body += bytes((readable, readable, (0x80 if signed else 0) | modifier, unit, 0, linearization))
    body += bytes((m & 0xFF, (m >> 2) & 0xC0, b & 0xFF, (b >> 2) & 0xC0, 0, exponents, 0, 0, 0, 0, 0xFF, 0))
    body += limits + bytes((1, 1, 0, 0, 0, name_code | len(name))) + name
    return bytes((1, 0, 0x51, 1, len(body))) + body


def compact(name: bytes, *, number: int = 1, type_code: int = 8, share: int = 1, offset: int = 0) -> bytes:
    """A compact record of a sensor-specific discrete sensor, shared by `share` sensors."""
    body = bytes((0x20, 0, number, 0x0A, 1, 0x7F, 0x68, type_code, 0x6F)) + bytes(6)
    body += bytes((0xC0, 0, 0, share, offset)) + bytes(6) + bytes((0xC0 | len(name),)) + name
    return bytes((1, 0, 0x51, 2, len(body))) + body
