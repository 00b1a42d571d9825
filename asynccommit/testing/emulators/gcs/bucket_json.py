"""Convert buckets, folders and operations to and from JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asynccommit.testing.emulators.gcs.object_json import Json, b64, quoted, wrong
from asynccommit.testing.emulators.gcs.wire import rfc3339
from asynccommit.testing.models.gcs.model import BucketOptions, Folder, GcsBucket, Operation

_RPC_CODES = {400: 3, 401: 16, 403: 7, 404: 5, 409: 6, 412: 9, 429: 8, 499: 1, 503: 14}
_ERRORS = 13  # the code of all other errors


# --- buckets ---------------------------------------------------------------------------------


def show_bucket(bucket: GcsBucket, origin: str, project: int = 0) -> Json:
    """Return a bucket's resource."""
    options, name = bucket.options, bucket.name
    shown: Json = {
        "kind": "storage#bucket",
        "id": name,
        "selfLink": f"{origin}/storage/v1/b/{name}",
        "projectNumber": str(project),
        "name": name,
        "metageneration": str(bucket.metageneration),
        "generation": str(int(bucket.created * 1_000_000)),
        "etag": bucket_etag(bucket),
        "location": options.location,
        "locationType": options.location_type,
        "storageClass": options.storage_class,
        "timeCreated": rfc3339(bucket.created),
        "updated": rfc3339(bucket.updated),
        **bucket.settings,
        "iamConfiguration": {
            "uniformBucketLevelAccess": {"enabled": True},
            "bucketPolicyOnly": {"enabled": True},
            "publicAccessPrevention": "inherited",
            **bucket.settings.get("iamConfiguration", {}),
        },
        "softDeletePolicy": {"retentionDurationSeconds": str(int(options.soft_delete))},
        "hierarchicalNamespace": {"enabled": options.hns},
    }
    return _add_bucket_rest(shown, bucket)


def _add_bucket_rest(shown: Json, bucket: GcsBucket) -> Json:
    options = bucket.options
    if options.versioning:
        shown["versioning"] = {"enabled": True}
    if options.requester_pays:
        shown["billing"] = {"requesterPays": True}
    if options.retention:
        shown["retentionPolicy"] = {
            "retentionPeriod": str(int(options.retention)),
            "effectiveTime": rfc3339(bucket.updated),
            **({"isLocked": True} if bucket.retention_locked else {}),
        }
    if options.default_event_based_hold:
        shown["defaultEventBasedHold"] = True
    if options.default_kms_key_name:
        shown["encryption"] = {"defaultKmsKeyName": options.default_kms_key_name}
    return shown


def bucket_etag(bucket: GcsBucket) -> str:
    """Return a bucket's etag, which is made of its metageneration."""
    return b64(b"\x08" + bytes([bucket.metageneration & 0x7F]))


def show_layout(bucket: GcsBucket) -> Json:
    """Return the layout of a bucket: whether it has a hierarchical namespace."""
    options = bucket.options
    shown: Json = {
        "kind": "storage#storageLayout",
        "bucket": bucket.name,
        "location": options.location,
        "locationType": options.location_type,
    }
    return {**shown, "hierarchicalNamespace": {"enabled": True}} if options.hns else shown


_SWITCHES = {
    ("versioning", "enabled"): "versioning",
    ("billing", "requesterPays"): "requester_pays",
    ("hierarchicalNamespace", "enabled"): "hns",
}
_SECONDS = {
    ("softDeletePolicy", "retentionDurationSeconds"): "soft_delete",
    ("retentionPolicy", "retentionPeriod"): "retention",
}


def read_options(given: Mapping[str, Any]) -> Json:
    """Return the ``BucketOptions`` fields in a resource.

    Raises ``GcsRefusal``.
    """
    found: Json = {}
    for (member, inner), field in (*_SWITCHES.items(), *_SECONDS.items()):
        if member in given:
            value = _inner(given, member).get(inner)
            found[field] = value is True if field in _SWITCHES.values() else _seconds(inner, value)
    for member, field in (("location", "location"), ("storageClass", "storage_class")):
        if isinstance(value := given.get(member), str):
            found[field] = value.upper()
    if "defaultEventBasedHold" in given:
        found["default_event_based_hold"] = given["defaultEventBasedHold"] is True
    if "encryption" in given:
        key = _inner(given, "encryption").get("defaultKmsKeyName")
        found["default_kms_key_name"] = str(key or "")
    return found


def whole_options(given: Mapping[str, Any]) -> Json:
    """Return the fields of options in a resource that replaces another.

    What it leaves out is as in a new bucket, unless the bucket keeps it for ever.
    """
    absent = {
        field: False if member in ("versioning", "billing") else 0.0
        for (member, _), field in {**_SWITCHES, **_SECONDS}.items()
        if member not in ("hierarchicalNamespace", "softDeletePolicy")
    }
    plain: Json = {"default_event_based_hold": False, "default_kms_key_name": ""}
    return {**absent, **plain, **read_options(given)}


def make_options(given: Mapping[str, Any]) -> BucketOptions:
    """Return the options in a resource, with the defaults of a new bucket."""
    return BucketOptions(**read_options(given))


def _inner(given: Mapping[str, Any], member: str) -> Mapping[str, Any]:
    value = given[member]
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise wrong(member, value)
    return value


def _seconds(member: str, value: Any) -> float:
    try:
        return float(value or 0)
    except (TypeError, ValueError):
        raise wrong(member, value) from None


# --- folders ---------------------------------------------------------------------------------


def show_folder(folder: Folder, origin: str) -> Json:
    """Return a folder's resource."""
    bucket, name = folder.bucket, folder.name
    shown: Json = {
        "kind": "storage#folder",
        "id": f"{bucket}/{name}",
        "selfLink": f"{origin}/storage/v1/b/{bucket}/folders/{quoted(name)}",
        "name": name,
        "bucket": bucket,
        "createTime": rfc3339(folder.created),
        "updateTime": rfc3339(folder.updated),
        "metageneration": str(folder.metageneration),
    }
    if folder.pending:
        shown["pendingRenameInfo"] = {"operationId": folder.pending}
    return shown


def show_operation(operation: Operation, origin: str) -> Json:
    """Return a long-running operation's resource."""
    bucket, ended = operation.bucket, operation.ended
    common: Json = {
        "createTime": rfc3339(operation.created),
        "updateTime": rfc3339(operation.created if ended is None else ended),
        "type": "rename-folder",
        "requestedCancellation": operation.refusal is not None and operation.refusal.status == 499,
        "progressPercent": -1 if ended is None else 100,
    }
    if ended is not None:
        common["endTime"] = rfc3339(ended)
    shown: Json = {
        "kind": "storage#operation",
        "name": f"projects/_/buckets/{bucket}/operations/{operation.id}",
        "selfLink": f"{origin}/storage/v1/b/{bucket}/operations/{operation.id}",
        "done": operation.done,
        "metadata": {
            "@type": "type.googleapis.com/google.storage.control.v2.RenameFolderMetadata",
            "commonMetadata": common,
            "sourceFolderId": operation.source,
            "destinationFolderId": operation.dest,
        },
    }
    return {**shown, **_outcome(operation, origin)}


def _outcome(operation: Operation, origin: str) -> Json:
    refusal, folder = operation.refusal, operation.folder
    if refusal is not None:
        code = _RPC_CODES.get(refusal.status, _ERRORS)
        return {"error": {"code": code, "message": refusal.message, "details": []}}
    if folder is None:
        return {}
    kind = {"@type": "type.googleapis.com/google.storage.control.v2.Folder"}
    return {"response": {**kind, **show_folder(folder, origin)}}
