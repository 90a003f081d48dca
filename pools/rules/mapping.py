"""Whose work it is that was seen in a cluster: by label, namespace or account, in this order."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from pools.rules.fleet import Id


@dataclass(frozen=True, slots=True)
class MappingRule:
    """Work of one cluster with this label (`key`), namespace or account (`key` empty) is the owner's."""

    cluster: Id
    kind: str
    key: str
    value: str
    tenant: Id
    project: Id | None = None


@dataclass(frozen=True, slots=True)
class Owner:
    """A tenant, or a project of it."""

    tenant: Id
    project: Id | None


class OwnerBook:
    """All rules, for looking up one job after the other."""

    def __init__(self, rules: Iterable[MappingRule]) -> None:
        self._rules = sorted(rules, key=lambda rule: (str(rule.cluster), rule.kind, rule.key, rule.value))
        self._owners = {
            (rule.cluster, rule.kind, rule.key, rule.value): Owner(rule.tenant, rule.project) for rule in self._rules
        }
        self._keys: dict[Id, list[str]] = {}
        for rule in self._rules:
            if rule.kind == "label" and rule.key not in self._keys.setdefault(rule.cluster, []):
                self._keys[rule.cluster].append(rule.key)

    @property
    def digest(self) -> str:
        """Changes when a rule does."""
        return blake2b(repr(self._rules).encode(), digest_size=16).hexdigest()

    def owner(
        self, cluster: Id, *, namespace: str = "", account: str = "", labels: Mapping[str, str] | None = None
    ) -> Owner | None:
        """Whose the work is; None when no rule says. Of several label rules the first by the label's name."""
        asked = [("label", key, (labels or {}).get(key, "")) for key in self._keys.get(cluster, ())]
        asked += [("namespace", "", namespace), ("account", "", account)]
        for kind, key, value in asked:
            if value and (found := self._owners.get((cluster, kind, key, value))) is not None:
                return found
        return None

    def place_of(self, cluster: Id, kind: str, tenant: Id, project: Id | None) -> str:
        """The namespace or account by which work of a project is told to be its own; "" when no rule names one.

        A rule of the project comes before one of the whole tenant; of several the first by name.
        """
        own = [rule for rule in self._rules if (rule.cluster, rule.kind, rule.tenant) == (cluster, kind, tenant)]
        exact = [rule.value for rule in own if rule.project == project and project is not None]
        return next(iter(exact or [rule.value for rule in own if rule.project is None]), "")
