"""Answers that are no objects (meta/v1 Status), in the words of a real 1.36."""

from typing import Any

from inventory.drivers.fake.kubernetes.kinds import Kind


class Refused(Exception):
    """A request that is answered with a Status."""

    def __init__(self, code: int, reason: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code = code
        self.body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
        }
        if details:
            self.body["details"] = details
        self.body["code"] = code


def unauthorized() -> Refused:
    """No token, or an unknown one."""
    return Refused(401, "Unauthorized", "Unauthorized")


def forbidden(user: str, verb: str, kind: Kind, part: str, namespace: str) -> Refused:
    """A right that the account has not."""
    resource = f"{kind.plural}/{part}" if part else kind.plural
    where = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    message = f'{kind.plural} is forbidden: User "{user}" cannot {verb} resource "{resource}" in API group '
    return Refused(403, "Forbidden", f'{message}"{kind.group}" {where}', kind=kind.plural)


def rejected(kind: Kind, name: str, why: str) -> Refused:
    """What an admission said no to."""
    return Refused(403, "Forbidden", f'{kind.plural} "{name}" is forbidden: {why}', name=name, kind=kind.plural)


def not_found(plural: str, name: str) -> Refused:
    """There is no such object."""
    return Refused(404, "NotFound", f'{plural} "{name}" not found', name=name, kind=plural)


def no_such_path() -> Refused:
    """The server knows no such resource."""
    return Refused(404, "NotFound", "the server could not find the requested resource")


def exists(kind: Kind, name: str) -> Refused:
    """An object of that name is there."""
    return Refused(409, "AlreadyExists", f'{kind.plural} "{name}" already exists', name=name, kind=kind.plural)


def stale(kind: Kind, name: str) -> Refused:
    """The change was made on an old version."""
    message = (
        f'Operation cannot be fulfilled on {kind.plural} "{name}": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    return Refused(409, "Conflict", message, name=name, kind=kind.plural)


def other_uid(kind: Kind, name: str) -> Refused:
    """A precondition names another object of the same name."""
    message = f'Operation cannot be fulfilled on {kind.plural} "{name}": the UID in the precondition does not match'
    return Refused(409, "Conflict", message, name=name, kind=kind.plural)


def expired(version: int, oldest: int) -> Refused:
    """A version that is no longer kept."""
    return Refused(410, "Expired", f"too old resource version: {version} ({oldest})")


def invalid(kind: Kind, name: str, faults: list[tuple[str, str]]) -> Refused:
    """Fields that make no sense, each with what is wrong."""
    causes = [{"reason": "FieldValueInvalid", "message": message, "field": field} for field, message in faults]
    told = ", ".join(f"{field}: {message}" for field, message in faults)
    text = f"[{told}]" if len(faults) > 1 else told
    message = f'{kind.kind} "{name}" is invalid: {text}'
    return Refused(422, "Invalid", message, name=name, kind=kind.kind, causes=causes)


def over_budget(budget: str, needed: int, healthy: int) -> Refused:
    """An eviction that a disruption budget forbids now."""
    told = f"The disruption budget {budget} needs {needed} healthy pods and has {healthy} currently"
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    return Refused(429, "TooManyRequests", message, causes=[{"reason": "DisruptionBudget", "message": told}])


def too_busy(seconds: int) -> Refused:
    """The server asks to come again later."""
    message = "the server has received too many requests and has asked us to try again later"
    return Refused(429, "TooManyRequests", message, retryAfterSeconds=seconds)


SUCCESS: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
