"""A BMC that answers from a table, for what no simulator does."""

from collections.abc import Callable, Sequence

from inventory.drivers.bmc.ipmi.errors import CommandRefused
from inventory.drivers.bmc.ipmi.session import Session

Answer = bytes | int | Callable[[bytes], bytes | int]


class ScriptedSession(Session):
    """`answers` maps (netfn, command) to an answer, a completion code, or a function of the request."""

    def __init__(self, answers: dict[tuple[int, int], Answer]) -> None:
        self.answers = answers
        self.asked: list[tuple[int, int, bytes]] = []

    async def command(
        self, netfn: int, command: int, data: bytes = b"", *, lun: int = 0, repeat: bool = True,
        patience: Sequence[float] = (),
    ) -> bytes:  # fmt: skip
        self.asked.append((netfn, command, data))
        answer = self.answers.get((netfn, command), 0xC1)
        if callable(answer):
            answer = answer(data)
        if isinstance(answer, int):
            raise CommandRefused(answer, netfn, command)
        return answer


def device_id(*, device_records: bool = False, repository: bool = True) -> bytes:
    """An answer to Get Device ID of a Supermicro board with firmware 1.05."""
    support = 0x01 | (0x02 if repository else 0)
    return bytes((0x20, 0x80 if device_records else 0x01, 1, 0x05, 2, support, 0x7C, 0x2A, 0, 0x37, 0x0B))
