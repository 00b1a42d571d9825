"""Holds, retention, and noncurrent or soft-deleted versions.

Sources: https://cloud.google.com/storage/docs/object-versioning,
https://cloud.google.com/storage/docs/soft-delete,
https://cloud.google.com/storage/docs/object-holds and
https://cloud.google.com/storage/docs/bucket-lock.
"""

from __future__ import annotations

from datetime import UTC, datetime

from asynccommit.testing.models.gcs.bucket import GcsBucket
from asynccommit.testing.models.gcs.objects import GcsObject
from asynccommit.testing.models.gcs.refusals import refuse


def check_free(bucket: GcsBucket, found: GcsObject, now: float) -> None:
    """Check that an object may be replaced or deleted: no hold, no retention."""
    details = found.details
    if details.temporary_hold or details.event_based_hold:
        kind = "Temporary" if details.temporary_hold else "Event-Based"
        raise refuse(
            "objectUnderActiveHold",
            f"Object '{found.bucket}/{found.name}' is under active {kind} hold and cannot be "
            "deleted, overwritten or archived until hold is removed.",
        )
    until = bucket.retained_until(found)
    if until is not None and now < until:
        raise refuse(
            "retentionPolicyNotMet",
            f"Object '{found.bucket}/{found.name}' is subject to bucket's retention policy or "
            "object retention and cannot be deleted, overwritten or archived until "
            f"{datetime.fromtimestamp(until, UTC).isoformat()}",
        )


def replaced(bucket: GcsBucket, found: GcsObject, now: float) -> None:
    """Keep an object that is no longer live, if the bucket has versioning."""
    if bucket.options.versioning:
        older = bucket.noncurrent.get(found.name, ())
        bucket.noncurrent[found.name] = (*older, found.ended(now, None))
    elif bucket.options.soft_delete:
        soften(bucket, found, now)


def soften(bucket: GcsBucket, found: GcsObject, now: float) -> None:
    """Keep a deleted object for as long as it can be restored."""
    if bucket.options.soft_delete:
        ended = found.ended(now, now + bucket.options.soft_delete)
        bucket.soft_deleted[found.name] = (*restorable(bucket, found.name, now), ended)


def restorable(bucket: GcsBucket, name: str, now: float) -> tuple[GcsObject, ...]:
    """Return the soft-deleted objects of a name that can still be restored."""
    found = bucket.soft_deleted.get(name, ())
    return tuple(old for old in found if old.purged is not None and now < old.purged)


def all_of(bucket: GcsBucket, name: str) -> tuple[GcsObject, ...]:
    """Return the objects of a name, noncurrent ones first."""
    live = bucket.objects.get(name)
    older = bucket.noncurrent.get(name, ())
    return older if live is None else (*older, live)


def drop(bucket: GcsBucket, found: GcsObject, now: float) -> None:
    """Delete one generation without keeping it as noncurrent."""
    if bucket.objects.get(found.name) is found:
        bucket.take(found.name)
    else:
        older = bucket.noncurrent[found.name]
        left = tuple(old for old in older if old is not found)
        if left:
            bucket.noncurrent[found.name] = left
        else:
            del bucket.noncurrent[found.name]
    soften(bucket, found, now)
