"""Model the folders of hierarchical buckets, and their renames.

Sources: https://cloud.google.com/storage/docs/hns-overview,
https://cloud.google.com/storage/docs/json_api/v1/folders and
https://cloud.google.com/storage/docs/rename-hns-folders. The messages of the refusals, and some of
their statuses, are *inferred*.
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from asynccommit.testing.models.gcs.bucket import Folder, GcsBucket, Operation
from asynccommit.testing.models.gcs.buckets import GcsBuckets
from asynccommit.testing.models.gcs.listing import (
    START,
    ListQuery,
    check_most,
    decode_token,
    encode_token,
    walk,
)
from asynccommit.testing.models.gcs.objects import check_name
from asynccommit.testing.models.gcs.preconditions import (
    NO_PRECONDITIONS,
    Preconditions,
    check_metageneration,
)
from asynccommit.testing.models.gcs.refusals import GcsRefusal, refuse

_CANCELLED = "The operation was cancelled."


class FolderListing(NamedTuple):
    """One page of folders; the token is ``""`` on the last page."""

    items: list[Folder]
    prefixes: list[str]
    token: str


class GcsFolders(GcsBuckets):
    """The operations on folders; rejected on a flat bucket.

    Names may or may not end in a slash.
    """

    def insert_folder(self, bucket: str, name: str, *, recursive: bool = False) -> Folder:
        """Create a folder; ``recursive`` creates missing parents too.

        Rejected if it exists (409).
        """
        self._permit("storage.folders.create", bucket, "folder")
        found, name = self._hierarchy(bucket), _slashed(name)
        check_name(name)
        self._check_movable(found, name)
        if name in found.folders:
            raise refuse("conflict", f"The folder '{name}' already exists.")
        if not recursive:
            _check_parent(found, name)
        found.make_folders(name, self.now())
        return found.folders[name]

    def get_folder(
        self, bucket: str, name: str, preconditions: Preconditions = NO_PRECONDITIONS
    ) -> Folder:
        """Return a folder. Rejected if it does not exist (404)."""
        self._permit("storage.folders.get", bucket, "folder")
        folder = _folder(self._hierarchy(bucket), name)
        check_metageneration(folder, preconditions, reading=True)
        return folder

    def list_folders(
        self,
        bucket: str,
        *,
        prefix: str = "",
        delimiter: str = "",
        start_offset: str = "",
        end_offset: str = "",
        page_token: str = "",
        page_size: int | None = None,
    ) -> FolderListing:
        """Return one page of the folders by name.

        With a delimiter, only those with no other folder between the prefix and them.
        """
        self._permit("storage.folders.list", bucket, "folder")
        found = self._hierarchy(bucket)
        if delimiter not in ("", "/"):
            raise refuse("invalid", location_type="parameter", location="delimiter")
        most = check_most(page_size, self.limits.page)
        after = decode_token(page_token) if page_token else START
        query = ListQuery(prefix, delimiter, start_offset, end_offset)
        names, folders = found.folder_names.in_order(), found.folders
        entries = walk(names, lambda at: (at,) if at in folders else (), query, after)
        places = [place for place, _ in islice(entries, most + 1)]
        token = encode_token(places[most - 1]) if places[most:] else ""
        return FolderListing([folders[place[0]] for place in places[:most]], [], token)

    def delete_folder(
        self, bucket: str, name: str, preconditions: Preconditions = NO_PRECONDITIONS
    ) -> None:
        """Delete a folder. Rejected if it is not empty (409)."""
        self._permit("storage.folders.delete", bucket, "folder")
        found = self._hierarchy(bucket)
        folder = _folder(found, name)
        check_metageneration(folder, preconditions)
        self._check_movable(found, folder.name)
        if folder.name in found.objects or any(
            names.any_below(folder.name) for names in (found.names, found.folder_names)
        ):  # inferred: an object with the folder's own name counts as content
            raise refuse("conflict", "The folder you tried to delete is not empty.")
        del found.folders[folder.name]
        found.folder_names.removed()

    # --- renaming ------------------------------------------------------------------------------

    def rename_folder(
        self,
        bucket: str,
        source: str,
        dest: str,
        preconditions: Preconditions = NO_PRECONDITIONS,
    ) -> Operation:
        """Start to move a folder with its content; the move is atomic.

        Until it takes effect reads see the old state, and writes below source and destination are
        rejected. The destination must not exist, and its parent must (inferred).
        """
        self._permit("storage.folders.rename", bucket, "folder")
        self._permit("storage.folders.create", bucket, "folder")
        found, dest = self._hierarchy(bucket), _slashed(dest)
        folder = _folder(found, source)
        check_name(dest)
        check_metageneration(folder, preconditions)
        _check_dest(found, folder.name, dest)
        self._check_movable(found, folder.name)
        self._check_movable(found, dest)
        now = self.now()
        made = Operation(
            bucket, self.new_id(), folder.name, dest, now, now + self.limits.operation_seconds
        )
        found.operations[made.id] = made
        found.pending.append(made.id)
        found.folders[folder.name] = folder._replace(pending=made.id)
        self._settle(found)
        return found.operations[made.id]

    def get_operation(self, bucket: str, id: str) -> Operation:
        """Return the state of a rename. Rejected if there was none (404)."""
        self._permit("storage.bucketOperations.get", bucket, "bucket")
        found = self._bucket(bucket).operations.get(id)
        if found is None:
            raise refuse("notFound", "The specified operation does not exist.")
        return found

    def list_operations(
        self, bucket: str, page_token: str = "", page_size: int | None = None
    ) -> tuple[list[Operation], str]:
        """Return one page of the renames, oldest first, and the next token."""
        self._permit("storage.bucketOperations.list", bucket, "bucket")
        most = check_most(page_size, self.limits.page)
        skipped = decode_token(page_token)[2] if page_token else 0
        operations = list(self._bucket(bucket).operations.values())[skipped:]
        token = encode_token(("", 0, skipped + most)) if operations[most:] else ""
        return operations[:most], token

    def cancel_operation(self, bucket: str, id: str) -> None:
        """Cancel a rename unless it has taken effect."""
        self._permit("storage.bucketOperations.cancel", bucket, "bucket")
        found = self._bucket(bucket)
        operation = self.get_operation(bucket, id)
        if not operation.done:
            no = GcsRefusal(499, "cancelled", _CANCELLED)
            self._end(found, operation._replace(ended=self.now(), refusal=no))
            folder = found.folders[operation.source]
            found.folders[operation.source] = folder._replace(pending="")

    def _settle(self, bucket: GcsBucket) -> None:
        now = self.now()
        for id in list(bucket.pending):
            operation = bucket.operations[id]
            if operation.due <= now:
                folder = _move_tree(bucket, operation)
                self._end(bucket, operation._replace(ended=operation.due, folder=folder))

    def _end(self, bucket: GcsBucket, operation: Operation) -> None:
        bucket.operations[operation.id] = operation
        bucket.pending.remove(operation.id)

    def _hierarchy(self, bucket: str) -> GcsBucket:
        found = self._bucket(bucket)
        if not found.options.hns:
            raise refuse(
                "conditionNotMet", "The bucket does not have hierarchical namespace enabled."
            )
        return found

    def _check_movable(self, bucket: GcsBucket, name: str) -> None:
        """Reject a write to the source or destination of a running rename."""
        for id in bucket.pending:
            operation = bucket.operations[id]
            for taken in (operation.source, operation.dest):
                if name.startswith(taken) or (name[-1:] == "/" and taken.startswith(name)):
                    raise refuse(
                        "conflict", f"The folder '{taken}' is part of a rename that is under way."
                    )


def _slashed(name: str) -> str:
    return name if name.endswith("/") else f"{name}/"


def _folder(bucket: GcsBucket, name: str) -> Folder:
    found = bucket.folders.get(_slashed(name))
    if found is None:
        raise refuse("notFound", "The folder does not exist.")
    return found


def _check_parent(bucket: GcsBucket, name: str) -> None:
    parent = name[: name.rfind("/", 0, -1) + 1]
    if parent and parent not in bucket.folders:
        raise refuse("conditionNotMet", "The parent folder does not exist.")


def _check_dest(bucket: GcsBucket, source: str, dest: str) -> None:
    if dest.startswith(source):
        raise refuse("invalid", "The destination folder cannot be the source or be inside it.")
    if dest in bucket.folders:
        raise refuse("conflict", f"The folder '{dest}' already exists.")
    _check_parent(bucket, dest)


def _move_tree(bucket: GcsBucket, operation: Operation) -> Folder:
    """Rename everything below a folder; objects keep their generations (inferred)."""
    source, dest = operation.source, operation.dest
    for name in bucket.names.below(source):
        moved = bucket.objects.pop(name).called(dest + name[len(source) :])
        bucket.objects[moved.name] = moved
    for name in bucket.folder_names.below(source):
        folder = bucket.folders.pop(name)._replace(
            name=dest + name[len(source) :], updated=operation.due, pending=""
        )
        bucket.folders[folder.name] = folder
    bucket.names.reset()
    bucket.folder_names.reset()
    return bucket.folders[dest]
