"""How all operations on objects find what is there and put something else in its place."""

from __future__ import annotations

from asynccommit.testing.models.gcs.bucket import GcsBucket
from asynccommit.testing.models.gcs.folders import GcsFolders
from asynccommit.testing.models.gcs.objects import Content, Details, GcsObject, check_name
from asynccommit.testing.models.gcs.preconditions import (
    NO_PRECONDITIONS,
    Preconditions,
    check_write,
)
from asynccommit.testing.models.gcs.refusals import refuse
from asynccommit.testing.models.gcs.versions import all_of, check_free, replaced


class ObjectOperations(GcsFolders):
    """What the operations on objects share."""

    def _object(self, bucket: GcsBucket, name: str, generation: int | None = None) -> GcsObject:
        """Return an object; without a generation the live one. Refused if there is none."""
        found = bucket.objects.get(name)
        if found is not None and (generation is None or found.generation == generation):
            return found
        if generation is not None:
            for old in all_of(bucket, name):
                if old.generation == generation:
                    return old
        raise refuse("notFound", f"No such object: {bucket.name}/{name}")

    def _clear(
        self, bucket: GcsBucket, name: str, preconditions: Preconditions, now: float
    ) -> GcsObject | None:
        """Return what is at a name where something is to be made; refuse if it must not be.

        Nothing is changed yet.
        """
        there = bucket.objects.get(name)
        if there is None:
            check_name(name)
        if bucket.pending:
            self._check_movable(bucket, name)
        if preconditions is not NO_PRECONDITIONS:
            check_write(there, preconditions)
        if there is not None:
            self._permit("storage.objects.delete", bucket.name)
            check_free(bucket, there, now)
        return there

    def _make(
        self, bucket: GcsBucket, name: str, content: Content, details: Details, now: float
    ) -> GcsObject:
        """Put a new object at a name that is cleared, with the folders above it."""
        made = GcsObject(bucket.name, name, self._next_generation(now), content, details, now)
        there = bucket.objects.get(name)
        if there is not None:
            replaced(bucket, there, now)
        bucket.put(made)
        if bucket.options.hns:
            bucket.make_folders(name, now)
        return made
