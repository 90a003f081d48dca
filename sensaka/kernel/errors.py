"""The errors that cross layers. An edge (REST, form, command) turns them into its own kind of answer."""


class SensakaError(Exception):
    """Base of every error that Sensaka raises on purpose.

    `code` is a stable slug for programs; the message says what to do about it.
    """

    code = "error"

    def __init__(self, message: str, **context: object) -> None:
        super().__init__(message)
        self.message = message
        self.context = context


class InvalidInput(SensakaError):
    """What was sent can't be used; the message says what would be accepted."""

    code = "invalid_input"


class Conflict(SensakaError):
    """The thing changed meanwhile, or another one stands in the way."""

    code = "conflict"


class NotFound(SensakaError):
    """What was named does not exist, or is not visible to whoever asks."""

    code = "not_found"


class IllegalTransition(Conflict):
    """A state machine has no such event in the present state."""

    code = "illegal_transition"
