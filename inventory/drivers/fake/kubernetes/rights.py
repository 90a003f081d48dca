"""Who may do what: accounts with the rules of ClusterRoles, as a manifest gives them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from inventory.drivers.fake.kubernetes.kinds import Kind

Rule = dict[str, Any]
EVERYTHING: Sequence[Rule] = ({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},)


@dataclass(frozen=True, slots=True)
class Account:
    """Who a token is, and what the account may do in every namespace."""

    name: str
    rules: Sequence[Rule] = ()

    def may(self, verb: str, group: str, plural: str, part: str = "", name: str = "") -> bool:
        """Whether one of its rules allows this."""
        return any(_allows(rule, verb, group, f"{plural}/{part}" if part else plural, name) for rule in self.rules)


def _allows(rule: Rule, verb: str, group: str, resource: str, name: str) -> bool:
    names = rule.get("resourceNames")
    return (
        _holds(rule.get("verbs"), verb)
        and _holds(rule.get("apiGroups"), group)
        and _holds(rule.get("resources"), resource)
        and (not names or name in names)
    )


def _holds(listed: Iterable[str] | None, value: str) -> bool:
    return any(one in ("*", value) for one in listed or ())


def accounts_of(manifest: str) -> dict[str, Account]:
    """The service accounts of a manifest, by name, with the rules that it binds to them in the whole cluster."""
    objects = [one for one in yaml.safe_load_all(manifest) if one]
    roles = {one["metadata"]["name"]: one.get("rules") or [] for one in objects if one["kind"] == "ClusterRole"}
    found: dict[str, list[Rule]] = {}
    for binding in objects:
        if binding["kind"] != "ClusterRoleBinding":
            continue
        for subject in binding["subjects"]:
            if subject["kind"] == "ServiceAccount":
                name = f"system:serviceaccount:{subject['namespace']}:{subject['name']}"
                found.setdefault(name, []).extend(roles.get(binding["roleRef"]["name"], []))
    return {name.rpartition(":")[2]: Account(name, tuple(rules)) for name, rules in found.items()}


def verb_of(method: str, kind: Kind, name: str, *, watch: bool) -> str:
    """The verb that a request needs."""
    if method == "GET":
        return "watch" if watch else "get" if name else "list"
    if method == "DELETE":
        return "delete" if name else "deletecollection"
    return {"POST": "create", "PUT": "update", "PATCH": "patch"}[method]
