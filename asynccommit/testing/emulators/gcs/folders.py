"""Serve requests about folders of hierarchical buckets, and their renames."""

from __future__ import annotations

from asynccommit.testing.emulators.gcs.bucket_json import show_folder, show_operation
from asynccommit.testing.emulators.gcs.buckets import chosen
from asynccommit.testing.emulators.gcs.call import GcsCall, flag, number
from asynccommit.testing.emulators.gcs.object_json import Json
from asynccommit.testing.emulators.gcs.wire import JSON, NO_CONTENT, GcsResponse
from asynccommit.testing.models.gcs.model import GcsService, Preconditions, refuse


class FolderRoutes:
    """The operations on folders; each method is one operation."""

    def __init__(self, service: GcsService, scheme: str) -> None:
        self._service = service
        self._scheme = scheme

    def list(self, call: GcsCall) -> GcsResponse:
        """Return a page of a bucket's folders."""
        query = call.query
        found = self._service.list_folders(
            call.bucket,
            prefix=query.get("prefix", ""),
            delimiter=query.get("delimiter", ""),
            start_offset=query.get("startOffset", ""),
            end_offset=query.get("endOffset", ""),
            page_token=query.get("pageToken", ""),
            page_size=number(query, "pageSize"),
        )
        origin = call.origin(self._scheme)
        shown: Json = {"kind": "storage#folders"}
        if found.items:
            shown["items"] = [show_folder(_, origin) for _ in found.items]
        if found.token:
            shown["nextPageToken"] = found.token
        return chosen(call, shown)

    def insert(self, call: GcsCall) -> GcsResponse:
        """Create a folder."""
        name = call.json().get("name")
        if not isinstance(name, str) or not name:
            raise refuse("required", "Required", location="name")
        recursive = flag(call.query, "recursive")
        made = self._service.insert_folder(call.bucket, name, recursive=recursive)
        return chosen(call, show_folder(made, call.origin(self._scheme)))

    def get(self, call: GcsCall) -> GcsResponse:
        """Return a folder's resource."""
        found = self._service.get_folder(call.bucket, call.name, call.conditions())
        return chosen(call, show_folder(found, call.origin(self._scheme)))

    def delete(self, call: GcsCall) -> GcsResponse:
        """Delete an empty folder."""
        self._service.delete_folder(call.bucket, call.name, call.conditions())
        return NO_CONTENT

    def rename(self, call: GcsCall) -> GcsResponse:
        """Start to rename a folder; the response names the operation."""
        bucket, source, dest = call.names
        conditions = self._rename_conditions(call)
        operation = self._service.rename_folder(bucket, source, dest, conditions)
        return chosen(call, show_operation(operation, call.origin(self._scheme)))

    def _rename_conditions(self, call: GcsCall) -> Preconditions:
        source = call.source_conditions()
        given = call.conditions()
        match = source.metageneration_match, source.metageneration_not_match
        if match == (None, None):
            match = given.metageneration_match, given.metageneration_not_match
        return Preconditions(None, None, *match)

    def operation(self, call: GcsCall) -> GcsResponse:
        """Return the state of an operation."""
        found = self._service.get_operation(call.bucket, call.name)
        return chosen(call, show_operation(found, call.origin(self._scheme)))

    def operations(self, call: GcsCall) -> GcsResponse:
        """Return a page of a bucket's operations."""
        query = call.query
        found, token = self._service.list_operations(
            call.bucket, query.get("pageToken", ""), number(query, "pageSize")
        )
        origin = call.origin(self._scheme)
        shown: Json = {"kind": "storage#operations"}
        shown["operations"] = [show_operation(_, origin) for _ in found]
        if token:
            shown["nextPageToken"] = token
        return chosen(call, shown)

    def cancel(self, call: GcsCall) -> GcsResponse:
        """Request the cancellation of an operation."""
        self._service.cancel_operation(call.bucket, call.name)
        return GcsResponse(200, JSON, b"{}")
