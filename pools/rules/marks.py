"""Our mark in a launched job's comment: by it the job is found again after a crash.

It cannot be guessed before the job is there, so that nobody else's work is taken for a request's.
"""

PREFIX = "sensaka:"


def mark_of(request: str, attempt: int, secret: str) -> str:
    """The mark of one launch, at most 64 characters: the request's id without hyphens, the attempt, a secret."""
    return f"{PREFIX}{request.replace('-', '')[-16:]}.{attempt}.{secret}"
