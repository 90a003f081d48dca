"""Merge patches (RFC 7396) and the record of who set which fields."""

from typing import Any

from inventory.drivers.fake.kubernetes.store import Object, timestamp

_RECORDED = (("spec", "unschedulable"),)  # the fields whose setter anybody here asks for


def merged(target: Any, patch: Any) -> Any:
    """The target with the patch in it: null removes, objects are merged, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def record(before: Object, after: Object, manager: str) -> None:
    """Notes in `after` who set the recorded fields; a field that was removed belongs to nobody."""
    for section, field in _RECORDED:
        old, new = before.get(section, {}).get(field), after.get(section, {}).get(field)
        if old == new:
            continue
        kept = [
            entry
            for entry in after["metadata"].get("managedFields", [])
            if f"f:{field}" not in entry.get("fieldsV1", {}).get(f"f:{section}", {})
        ]
        if new is not None:
            kept.append(
                {
                    "manager": manager,
                    "operation": "Update",
                    "apiVersion": "v1",
                    "time": timestamp(),
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {f"f:{section}": {f"f:{field}": {}}},
                }
            )
        after["metadata"] = {**after["metadata"], "managedFields": kept}
