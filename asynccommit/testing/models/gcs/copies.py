"""Model moves (one step) and rewrites (possibly many calls).

Sources: https://cloud.google.com/storage/docs/json_api/v1/objects/move and
https://cloud.google.com/storage/docs/json_api/v1/objects/rewrite
"""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple

from asynccommit.testing.models.gcs.bucket import GcsBucket
from asynccommit.testing.models.gcs.objects import Details, GcsObject
from asynccommit.testing.models.gcs.places import ObjectOperations
from asynccommit.testing.models.gcs.preconditions import (
    NO_PRECONDITIONS,
    Preconditions,
    check_write,
)
from asynccommit.testing.models.gcs.refusals import refuse
from asynccommit.testing.models.gcs.versions import check_free

MIB = 1_048_576


class Rewrite(NamedTuple):
    """The progress of a rewrite: the object, or a token to continue."""

    rewritten: int
    total: int
    token: str = ""
    object: GcsObject | None = None


class Copies(ObjectOperations):
    """The operations that create an object from another object."""

    def move(
        self,
        bucket: str,
        source: str,
        dest: str,
        *,
        preconditions: Preconditions = NO_PRECONDITIONS,
        source_preconditions: Preconditions = NO_PRECONDITIONS,
    ) -> GcsObject:
        """Rename an object, in one step.

        It keeps content, checksums and details; generation, metageneration and times are new. The
        source becomes neither soft-deleted nor noncurrent (inferred).
        """
        if self.denied:
            self._permit("storage.objects.move", bucket)
            self._permit("storage.objects.create", bucket)
        found = self._bucket(bucket)
        if not found.options.moves:
            raise refuse("notFound", "Not Found")
        moved = self._object(found, source)
        if source == dest:
            raise refuse("invalid", "The source and destination object names must be different.")
        if source_preconditions is not NO_PRECONDITIONS:
            check_write(moved, source_preconditions)
        now = self.now()
        if found.pending:
            self._check_movable(found, source)
        self._clear(found, dest, preconditions, now)
        check_free(found, moved, now)
        found.take(source)
        return self._make(found, dest, moved.content, moved.details, now)

    def rewrite(
        self,
        bucket: str,
        source: str,
        dest_bucket: str,
        dest: str,
        *,
        generation: int | None = None,
        details: Details | None = None,
        token: str = "",
        max_bytes: int | None = None,
        preconditions: Preconditions = NO_PRECONDITIONS,
        source_preconditions: Preconditions = NO_PRECONDITIONS,
    ) -> Rewrite:
        """Copy an object, or the part of it that one call copies.

        Args:
            bucket: bucket of the source.
            source: name of the source.
            dest_bucket: bucket of the copy.
            dest: name of the copy.
            generation: generation of the source; the live one if ``None``.
            details: details of the copy; the source's if ``None``.
            token: token of the previous call.
            max_bytes: maximum for this call; a multiple of 1 MiB.
            preconditions: preconditions on the destination.
            source_preconditions: preconditions on the source.
        """
        if max_bytes is not None and (max_bytes < MIB or max_bytes % MIB):
            raise refuse("invalid", "The max bytes rewritten per call must be a multiple of 1MiB.")
        place = (bucket, source, dest_bucket, dest)
        done = 0
        if token:
            generation, done = _progress(place, token, generation)
        copied = self._source(bucket, source, generation, source_preconditions)
        into, now = self._bucket(dest_bucket), self.now()
        self._permit("storage.objects.create", dest_bucket)
        self._clear(into, dest, preconditions, now)
        done = min(copied.size, done + self._share(self._bucket(bucket), into, max_bytes))
        if done < copied.size:
            return Rewrite(done, copied.size, _token(place, copied.generation, done))
        made = self._make(into, dest, copied.content, _copied(into, copied, details), now)
        return Rewrite(done, done, object=made)

    def copy_object(
        self,
        bucket: str,
        source: str,
        dest_bucket: str,
        dest: str,
        *,
        generation: int | None = None,
        details: Details | None = None,
        preconditions: Preconditions = NO_PRECONDITIONS,
        source_preconditions: Preconditions = NO_PRECONDITIONS,
    ) -> GcsObject:
        """Copy an object in one call (``copyTo``). Args: see ``rewrite``."""
        copied = self._source(bucket, source, generation, source_preconditions)
        into, now = self._bucket(dest_bucket), self.now()
        self._permit("storage.objects.create", dest_bucket)
        self._clear(into, dest, preconditions, now)
        return self._make(into, dest, copied.content, _copied(into, copied, details), now)

    def _source(
        self, bucket: str, name: str, generation: int | None, preconditions: Preconditions
    ) -> GcsObject:
        self._permit("storage.objects.get", bucket)
        found = self._object(self._bucket(bucket), name, generation)
        if preconditions is not NO_PRECONDITIONS:
            check_write(found, preconditions)
        return found

    def _share(self, source: GcsBucket, dest: GcsBucket, max_bytes: int | None) -> int:
        """Return the number of bytes that one call copies.

        Within one location it is the whole object (documented).
        """
        if self.limits.rewrite_bytes:
            return min(self.limits.rewrite_bytes, max_bytes or self.limits.rewrite_bytes)
        near = source.options.location == dest.options.location
        return 1 << 62 if near or max_bytes is None else max_bytes


def _copied(dest: GcsBucket, copied: GcsObject, details: Details | None) -> Details:
    """Return the details of a copy, without holds and retention (documented)."""
    if details is not None:
        return dest.filled(details)
    kept = copied.details
    if kept.temporary_hold or kept.event_based_hold or kept.retention:
        kept = kept._replace(temporary_hold=False, event_based_hold=False, retention=None)
    if kept == dest.plain:
        return dest.plain
    return dest.filled(kept) if dest.plain.event_based_hold else kept


def _token(place: tuple[str, ...], generation: int, done: int) -> str:
    text = "\n".join((*place, str(generation), str(done)))
    return base64.urlsafe_b64encode(text.encode()).decode()


def _progress(place: tuple[str, ...], token: str, generation: int | None) -> tuple[int, int]:
    """Return the generation and position in a token of this rewrite."""
    try:
        *made_for, made_of, done = base64.urlsafe_b64decode(token).decode().split("\n")
        found = int(made_of), int(done)
    except (binascii.Error, ValueError):
        made_for, found = [], (0, 0)
    if tuple(made_for) != place or generation not in (None, found[0]):
        raise refuse("invalid", "Invalid rewrite token.")
    return found
