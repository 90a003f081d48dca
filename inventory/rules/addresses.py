"""Address ranges as people write them: networks, ranges, lists, IPv4 and IPv6."""

import re
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

MOST_TARGETS = 4096
ACCEPTED = "use networks (10.0.0.0/24), ranges (10.0.0.10-10.0.0.40 or 10.0.0.10-40) and single addresses, by commas"

_Address = IPv4Address | IPv6Address


def expand(text: str, *, most: int = MOST_TARGETS) -> list[str]:
    """Every address that a text names, in its order, as text.

    Raises ValueError that says which part is wrong and what is accepted: for a part that is no
    address, a backward or mixed range, an address that is named twice, or more than `most`.
    """
    parts = [part for part in re.split(r"[,;\s]+", _tight(text)) if part]
    if not parts:
        raise ValueError(f"no address given; {ACCEPTED}")
    found: dict[str, None] = {}
    for part in parts:
        for address in _addresses(part):
            name = str(address)
            if name in found:
                raise ValueError(f"{name} is named twice (again in {part!r}); name each address once")
            if len(found) >= most:
                raise ValueError(f"more than {most} addresses; divide the search into smaller ones")
            found[name] = None
    return list(found)


def _tight(text: str) -> str:
    """Ranges without the blanks that people put around the dash."""
    return re.sub(r"\s*[-\u2013]\s*", "-", text.strip())


def _addresses(part: str) -> Iterator[_Address]:
    if "/" in part:
        return _network(part)
    if "-" in part:
        return _range(part)
    return iter([_address(part)])


def _address(text: str, part: str = "") -> _Address:
    try:
        return ip_address(text.strip("[]"))
    except ValueError:
        raise ValueError(f"{part or text!r} is no address; {ACCEPTED}") from None


def _network(part: str) -> Iterator[_Address]:
    try:
        network = ip_network(part, strict=False)
    except ValueError:
        raise ValueError(f"{part!r} is no network; {ACCEPTED}") from None
    return iter(network.hosts())


def _range(part: str) -> Iterator[_Address]:
    left, _, right = part.partition("-")
    first = _address(left, part)
    last = _address(_completed(first, right), part)
    if first.version != last.version or int(last) < int(first):
        raise ValueError(f"{part!r} does not run from a lower to a higher address; {ACCEPTED}")
    kind = type(first)
    return (kind(number) for number in range(int(first), int(last) + 1))


def _completed(first: _Address, right: str) -> str:
    """The end of a range whose last part alone is given, like 10.0.0.10-40."""
    sign = "." if first.version == 4 else ":"
    if sign in right or not re.fullmatch(r"[0-9a-fA-F]{1,4}", right):
        return right
    return f"{str(first).rpartition(sign)[0]}{sign}{right}"


def is_never_read(text: str) -> bool:
    """Whether a source can't stand at this address: link-local, multicast or none at all.

    At link-local addresses clouds and BMCs' host interfaces hand out credentials to whoever asks (169.254.169.254,
    RFC 3927, RFC 4291). A name is no address: False.
    """
    try:
        address = ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv6Address):
        address = address.ipv4_mapped or address
    return address.is_link_local or address.is_multicast or address.is_unspecified
