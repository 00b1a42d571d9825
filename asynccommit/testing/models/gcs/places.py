"""Look up and replace objects, for all operations on objects."""

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
    """The common base of the operations on objects."""

    def _object(self, bucket: GcsBucket, name: str, generation: int | None = None) -> GcsObject:
        """Return an object, by default the live one. Rejected if missing."""
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
        """Return the present object at a name, if it may be replaced; change nothing."""
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
        """Create an object at a name that was cleared, with the folders above it.

        Rejected in a zonal bucket, as its users report: only gRPC writes appendable objects.
        """
        if bucket.options.zonal:
            raise refuse("invalid", "This bucket requires appendable objects.")
        made = GcsObject(bucket.name, name, self._next_generation(now), content, details, now)
        there = bucket.objects.get(name)
        if there is not None:
            replaced(bucket, there, now)
        bucket.put(made)
        if bucket.options.hns:
            bucket.make_folders(name, now)
        return made
