"""Keep the settings of a bucket that have no effect; refuse unknown ones.

They are shown as they were given. Members and limits are those of Google's pages "Buckets", of the
JSON API, and "Bucket labels"; a change is a merge, as on its page "Performance tips".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asynccommit.testing.emulators.gcs.object_json import Json, wrong
from asynccommit.testing.models.gcs.model import refuse

_KEPT: Mapping[str, type] = {
    "autoclass": dict,
    "cors": list,
    "customPlacementConfig": dict,
    "iamConfiguration": dict,
    "ipFilter": dict,
    "labels": dict,
    "lifecycle": dict,
    "logging": dict,
    "rpo": str,
    "website": dict,
}
# What is modelled, and what only a response has; access to each bucket is uniform.
_OTHERS = """
    acl billing defaultEventBasedHold defaultObjectAcl encryption etag generation
    hierarchicalNamespace id kind location locationType metageneration name objectRetention owner
    project projectNumber retentionPolicy satisfiesPZI satisfiesPZS selfLink softDeletePolicy
    storageClass timeCreated updated versioning
"""
_ACTIONS = ("AbortIncompleteMultipartUpload", "Delete", "SetStorageClass")
_MOST_LABELS, _LONGEST_LABEL, _MOST_RULES = 64, 63, 100


def change_settings(old: Mapping[str, Any], given: Mapping[str, Any], *, whole: bool) -> Json:
    """Return the settings after a request; ``whole`` if it replaces them all.

    Raises ``GcsRefusal`` for an invalid or unknown one.
    """
    if unknown := sorted(given.keys() - _KEPT.keys() - set(_OTHERS.split())):
        raise refuse("invalid", f"A bucket has no {unknown[0]!r} here.", location=unknown[0])
    changes = {name: value for name, value in given.items() if name in _KEPT}
    for name, value in changes.items():
        if value is not None and not isinstance(value, _KEPT[name]):
            raise wrong(name, value)
    if "iamConfiguration" in changes:
        prevention = (changes["iamConfiguration"] or {}).get("publicAccessPrevention")
        changes["iamConfiguration"] = {"publicAccessPrevention": prevention}
    made: Json = _merged({} if whole else old, changes)
    _check_labels(made.get("labels", {}))
    _check_rules(made.get("lifecycle", {}).get("rule", []))
    return {name: value for name, value in made.items() if value and value != {"rule": []}}


def _merged(old: Mapping[str, Any], changes: Mapping[str, Any]) -> Json:
    """Return ``old`` with changes to its members; ``None`` removes one."""
    made = dict(old)
    for name, value in changes.items():
        if value is None:
            made.pop(name, None)
        elif isinstance(value, dict):
            kept = made.get(name)
            made[name] = _merged(kept if isinstance(kept, dict) else {}, value)
        else:
            made[name] = value
    return made


def _check_labels(labels: Mapping[str, Any]) -> None:
    if len(labels) > _MOST_LABELS:
        raise refuse("invalid", f"A bucket has at most {_MOST_LABELS} labels.", location="labels")
    for key, value in labels.items():
        if not isinstance(value, str) or not key or any(map(_is_no_label, (key, value))):
            raise wrong(f"labels.{key}", value)


def _is_no_label(text: str) -> bool:
    """Return whether a text is too long, or has invalid characters.

    Small letters, digits, hyphens and underscores are valid.
    """
    plain = text.replace("-", "").replace("_", "")
    return len(text) > _LONGEST_LABEL or text != text.lower() or not (plain.isalnum() or not plain)


def _check_rules(rules: Any) -> None:
    if not isinstance(rules, list) or len(rules) > _MOST_RULES:
        raise wrong("lifecycle.rule", rules)
    for rule in rules:
        action = rule.get("action") if isinstance(rule, dict) else None
        if not isinstance(action, dict) or action.get("type") not in _ACTIONS:
            raise wrong("lifecycle.rule.action", action)
        if not isinstance(rule.get("condition"), dict) or not rule["condition"]:
            raise wrong("lifecycle.rule.condition", rule.get("condition"))
