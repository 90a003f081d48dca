"""State machines as tables: states with one sentence each, transitions apart, one call that refuses the rest.

The drawing in docs/states.md is generated from these tables (`manage.py draw_states`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sensaka.kernel.errors import IllegalTransition


@dataclass(frozen=True, slots=True)
class Transition:
    """One arrow: `event` leads from `source` to `target`."""

    event: str
    source: str
    target: str


def arrows(event: str, sources: Iterable[str], target: str) -> tuple[Transition, ...]:
    """The same event from several states to one target."""
    return tuple(Transition(event, source, target) for source in sources)


class StateMachine:
    """A named table of states and transitions.

    Raises ValueError at construction when an arrow names an unknown state or two arrows of one
    event leave the same state, so that a wrong table never starts.
    """

    def __init__(
        self, name: str, *, initial: str, states: Mapping[str, str], transitions: Iterable[Transition]
    ) -> None:
        self.name = name
        self.initial = initial
        self.states = dict(states)
        self.transitions = tuple(transitions)
        self._targets: dict[tuple[str, str], str] = {}
        for arrow in self.transitions:
            if arrow.source not in self.states or arrow.target not in self.states:
                raise ValueError(f"{name}: {arrow} names an unknown state")
            if (arrow.source, arrow.event) in self._targets:
                raise ValueError(f"{name}: two arrows for {arrow.event} from {arrow.source}")
            self._targets[arrow.source, arrow.event] = arrow.target
        if initial not in self.states:
            raise ValueError(f"{name}: unknown initial state {initial}")

    def allows(self, state: str, event: str) -> bool:
        """Whether `event` may happen in `state`."""
        return (state, event) in self._targets

    def target(self, state: str, event: str) -> str:
        """The state that `event` leads to; IllegalTransition names what would be possible."""
        try:
            return self._targets[state, event]
        except KeyError:
            possible = ", ".join(sorted(self.events(state))) or "nothing"
            raise IllegalTransition(
                f"{self.name}: {event!r} is not possible in {state!r}; possible: {possible}"
            ) from None

    def events(self, state: str) -> set[str]:
        """The events that may happen in `state`."""
        return {event for source, event in self._targets if source == state}

    def mermaid(self) -> str:
        """The drawing, as a Mermaid state diagram."""
        lines = ["stateDiagram-v2", f"    [*] --> {self.initial}"]
        lines += [f"    {arrow.source} --> {arrow.target}: {arrow.event}" for arrow in self.transitions]
        return "\n".join(lines)
