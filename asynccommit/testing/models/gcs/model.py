"""Model Google Cloud Storage without its wire format.

It is synchronous, in memory, and uses neither HTTP nor wall time; every rejected request raises
``GcsRefusal``. Names are decoded; the generation ``None`` means the live one.

Comments mark behaviour that is only *inferred*; the rest is documented by Google.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from asynccommit.testing.models.gcs.bucket import BucketOptions, Folder, GcsBucket, Operation
from asynccommit.testing.models.gcs.buckets import GcsLimits
from asynccommit.testing.models.gcs.copies import Copies, Rewrite
from asynccommit.testing.models.gcs.folders import FolderListing
from asynccommit.testing.models.gcs.listing import EVERYTHING, GcsPage, ListQuery, list_page
from asynccommit.testing.models.gcs.objects import (
    NO_DETAILS,
    Content,
    Details,
    GcsObject,
    Retention,
)
from asynccommit.testing.models.gcs.preconditions import (
    IF_ABSENT,
    NO_PRECONDITIONS,
    Preconditions,
    check_read,
    check_write,
)
from asynccommit.testing.models.gcs.refusals import GcsRefusal, refuse
from asynccommit.testing.models.gcs.versions import check_free, drop, replaced, restorable

__all__ = [
    "IF_ABSENT",
    "NO_DETAILS",
    "NO_PRECONDITIONS",
    "BucketOptions",
    "ComposeSource",
    "Content",
    "Details",
    "Folder",
    "FolderListing",
    "GcsBucket",
    "GcsLimits",
    "GcsObject",
    "GcsPage",
    "GcsRefusal",
    "GcsService",
    "ListQuery",
    "Operation",
    "Preconditions",
    "Retention",
    "Rewrite",
    "refuse",
]

_MOST_SOURCES = 32
_FIELDS = frozenset(Details._fields)


class ComposeSource(NamedTuple):
    """One source of a compose: object, generation, expected generation."""

    name: str
    generation: int | None = None
    generation_match: int | None = None


class GcsService(Copies):
    """All buckets of one project.

    Args:
        now: the server's clock, seconds since the epoch.
        new_id: creates operation ids.
        limits: limits that split long operations; may be replaced at any time.
        project: id of the project.
        principal: name of the caller, for messages.
    """

    # --- making --------------------------------------------------------------------------------

    def insert(
        self,
        bucket: str,
        name: str,
        data: bytes,
        *,
        details: Details = NO_DETAILS,
        preconditions: Preconditions = NO_PRECONDITIONS,
        crc32c: int | None = None,
        md5: bytes | None = None,
    ) -> GcsObject:
        """Create an object, replacing the present one.

        Rejected if a given checksum does not match the data (400).
        """
        self._permit("storage.objects.create", bucket)
        found, now = self._bucket(bucket), self.now()
        self._clear(found, name, preconditions, now)
        content = Content(data)
        if crc32c is not None and crc32c != content.crc32c:
            raise _mismatch("CRC32C", crc32c.to_bytes(4, "big"), content.crc32c.to_bytes(4, "big"))
        if md5 is not None and md5 != content.md5:
            raise _mismatch("MD5 hash", md5, content.md5 or b"")
        return self._make(found, name, content, found.filled(details), now)

    def compose(
        self,
        bucket: str,
        name: str,
        sources: Sequence[ComposeSource],
        *,
        details: Details = NO_DETAILS,
        preconditions: Preconditions = NO_PRECONDITIONS,
        delete_sources: bool = False,
    ) -> GcsObject:
        """Concatenate up to 32 objects of the bucket into a new object.

        ``delete_sources`` deletes them in the same step, except one that the new object replaces.
        A source that may not be deleted rejects the whole (inferred).

        Source: https://cloud.google.com/storage/docs/json_api/v1/objects/compose
        """
        self._permit("storage.objects.create", bucket)
        self._permit("storage.objects.get", bucket)
        if not 0 < len(sources) <= _MOST_SOURCES:
            raise refuse(
                "invalid",
                f"The number of source components provided ({len(sources)}) must be from 1 to "
                f"{_MOST_SOURCES}.",
            )
        found, now = self._bucket(bucket), self.now()
        parts = [self._source_of(found, source) for source in sources]
        self._clear(found, name, preconditions, now)
        if delete_sources:
            self._check_deletable(found, parts, now)
        data = b"".join(part.content.data for part in parts)
        content = Content(data, sum(part.content.components or 1 for part in parts))
        made = self._make(found, name, content, found.filled(details), now)
        if delete_sources:
            for part in {part.generation: part for part in parts}.values():
                if part.name != name:
                    self._delete(found, part, now)
        return made

    def _source_of(self, bucket: GcsBucket, source: ComposeSource) -> GcsObject:
        part = self._object(bucket, source.name, source.generation)
        check_write(part, Preconditions(source.generation_match))
        return part

    def _check_deletable(self, bucket: GcsBucket, parts: Sequence[GcsObject], now: float) -> None:
        self._permit("storage.objects.delete", bucket.name)
        for part in parts:
            if bucket.pending:
                self._check_movable(bucket, part.name)
            check_free(bucket, part, now)

    def _delete(self, bucket: GcsBucket, found: GcsObject, now: float) -> None:
        """Delete an object that was checked; a live one may become noncurrent."""
        if bucket.objects.get(found.name) is found:
            bucket.take(found.name)
            replaced(bucket, found, now)
        else:
            drop(bucket, found, now)

    def restore(
        self,
        bucket: str,
        name: str,
        generation: int,
        *,
        preconditions: Preconditions = NO_PRECONDITIONS,
    ) -> GcsObject:
        """Restore a soft-deleted object as a new generation.

        Source: https://cloud.google.com/storage/docs/json_api/v1/objects/restore
        """
        self._permit("storage.objects.restore", bucket)
        self._permit("storage.objects.create", bucket)
        found, now = self._bucket(bucket), self.now()
        old = self._soft_deleted(found, name, generation, now)
        self._clear(found, name, preconditions, now)
        return self._make(found, name, old.content, old.details, now)

    # --- reading -------------------------------------------------------------------------------

    def get(
        self,
        bucket: str,
        name: str,
        *,
        generation: int | None = None,
        preconditions: Preconditions = NO_PRECONDITIONS,
        soft_deleted: bool = False,
    ) -> GcsObject:
        """Return an object; a soft-deleted one by its generation."""
        self._permit("storage.objects.get", bucket)
        found = self._bucket(bucket)
        if soft_deleted:
            if generation is None:
                raise refuse("required", location_type="parameter", location="generation")
            there = self._soft_deleted(found, name, generation, self.now())
        else:
            there = self._object(found, name, generation)
        if preconditions is not NO_PRECONDITIONS:
            check_read(there, preconditions)
        return there

    def read(
        self,
        bucket: str,
        name: str,
        start: int = 0,
        end: int | None = None,
        *,
        generation: int | None = None,
        preconditions: Preconditions = NO_PRECONDITIONS,
    ) -> tuple[GcsObject, bytes]:
        """Return an object and its bytes from ``start`` to before ``end``.

        A negative ``start`` counts from the end. Rejected if ``start`` is beyond the end (416).
        """
        found = self.get(bucket, name, generation=generation, preconditions=preconditions)
        return found, found.content.part(start, end)

    def list(self, bucket: str, query: ListQuery = EVERYTHING) -> GcsPage:
        """Return one page of a bucket."""
        self._permit("storage.objects.list", bucket, "bucket")
        found = self._bucket(bucket)
        return list_page(found, query, self.limits.page, self.limits.empty_pages, self.now())

    # --- changing ------------------------------------------------------------------------------

    def patch(
        self,
        bucket: str,
        name: str,
        changes: Mapping[str, Any],
        *,
        generation: int | None = None,
        preconditions: Preconditions = NO_PRECONDITIONS,
        replace: bool = False,
    ) -> GcsObject:
        """Change the metadata of an object.

        Args:
            bucket: name of the bucket.
            name: name of the object.
            changes: fields of ``Details`` -> values, ``None`` to reset one. ``metadata`` is merged,
                its ``None`` values remove keys.
            generation: generation to change; the live one if ``None``.
            preconditions: preconditions on that generation.
            replace: reset all fields that are not given (``update``).
        """
        self._permit("storage.objects.update", bucket)
        found = self._bucket(bucket)
        there = self._object(found, name, generation)
        if preconditions is not NO_PRECONDITIONS:
            check_write(there, preconditions)
        self._check_movable(found, name)
        if not changes.keys() <= _FIELDS:
            raise refuse("invalid")
        made = there.changed(_patched(found, there.details, changes, replace), self.now())
        made.deleted = there.deleted
        if found.objects.get(name) is there:
            found.objects[name] = made
        else:
            older = found.noncurrent[name]
            found.noncurrent[name] = tuple(made if old is there else old for old in older)
        return made

    def delete(
        self,
        bucket: str,
        name: str,
        *,
        generation: int | None = None,
        preconditions: Preconditions = NO_PRECONDITIONS,
    ) -> None:
        """Delete an object; an explicit generation does not become noncurrent."""
        if self.denied:
            self._permit("storage.objects.delete", bucket)
        found = self._bucket(bucket)
        there = self._object(found, name, generation)
        if preconditions is not NO_PRECONDITIONS:
            check_write(there, preconditions)
        if found.pending:
            self._check_movable(found, name)
        now = self.now()
        check_free(found, there, now)
        if generation is not None:
            drop(found, there, now)
            return
        found.take(name)
        replaced(found, there, now)

    def _soft_deleted(self, bucket: GcsBucket, name: str, generation: int, now: float) -> GcsObject:
        for old in restorable(bucket, name, now):
            if old.generation == generation:
                return old
        raise refuse("notFound", f"No such object: {bucket.name}/{name}")


def _patched(
    bucket: GcsBucket, details: Details, changes: Mapping[str, Any], replace: bool
) -> Details:
    """Return details with changes applied; ``None`` resets a field."""
    plain = NO_DETAILS._replace(storage_class=bucket.options.storage_class)
    values = {
        field: getattr(plain, field) if value is None else value for field, value in changes.items()
    }
    if changes.get("metadata") is not None:
        merged: dict[str, Any] = {} if replace else dict(details.metadata)
        merged.update(changes["metadata"])
        values["metadata"] = {key: text for key, text in merged.items() if text is not None}
    if not replace:
        return details._replace(**values)
    kept = {"storage_class": details.storage_class, "kms_key_name": details.kms_key_name}
    return NO_DETAILS._replace(**{**kept, **values})


def _mismatch(kind: str, given: bytes, own: bytes) -> GcsRefusal:
    detail, computed = (base64.b64encode(value).decode() for value in (given, own))
    return refuse(
        "invalid",
        f'Provided {kind} "{detail}" doesn\'t match calculated {kind} "{computed}".',
    )
