"""Serve requests about buckets and their permissions."""

from __future__ import annotations

from asynccommit.testing.emulators.gcs.bucket_json import (
    bucket_etag,
    make_options,
    read_options,
    show_bucket,
    show_layout,
    whole_options,
)
from asynccommit.testing.emulators.gcs.bucket_settings import change_settings
from asynccommit.testing.emulators.gcs.call import GcsCall, number
from asynccommit.testing.emulators.gcs.fields import read_mask, select
from asynccommit.testing.emulators.gcs.object_json import Json
from asynccommit.testing.emulators.gcs.wire import NO_CONTENT, GcsResponse, json_answer
from asynccommit.testing.models.gcs.model import GcsBucket, GcsService, refuse


class BucketRoutes:
    """The operations on buckets; each method is one operation."""

    def __init__(self, service: GcsService, scheme: str) -> None:
        self._service = service
        self._scheme = scheme

    def _shown(self, call: GcsCall, bucket: GcsBucket) -> GcsResponse:
        return chosen(call, show_bucket(bucket, call.origin(self._scheme)))

    def list(self, call: GcsCall) -> GcsResponse:
        """Return a page of the buckets."""
        query = call.query
        if not query.get("project"):
            raise refuse("required", "Required parameter: project", location="project")
        found, token = self._service.list_buckets(
            query.get("prefix", ""), query.get("pageToken", ""), number(query, "maxResults")
        )
        shown: Json = {"kind": "storage#buckets"}
        if found:
            shown["items"] = [show_bucket(_, call.origin(self._scheme)) for _ in found]
        if token:
            shown["nextPageToken"] = token
        return chosen(call, shown)

    def insert(self, call: GcsCall) -> GcsResponse:
        """Create a bucket."""
        given = call.json()
        name = given.get("name")
        if not isinstance(name, str) or not name:
            raise refuse("required", "Required", location="name")
        settings = change_settings({}, given, whole=True)
        made = self._service.create_bucket(name, make_options(given))
        made.settings = settings
        return self._shown(call, made)

    def get(self, call: GcsCall) -> GcsResponse:
        """Return a bucket's resource."""
        return self._shown(call, self._service.get_bucket(call.bucket, call.conditions()))

    def layout(self, call: GcsCall) -> GcsResponse:
        """Return whether a bucket has a hierarchical namespace."""
        return chosen(call, show_layout(self._service.storage_layout(call.bucket)))

    def patch(self, call: GcsCall) -> GcsResponse:
        """Change a bucket."""
        return self._change(call, read_options(call.json()), whole=False)

    def update(self, call: GcsCall) -> GcsResponse:
        """Replace what can be changed of a bucket."""
        return self._change(call, whole_options(call.json()), whole=True)

    def _change(self, call: GcsCall, options: Json, *, whole: bool) -> GcsResponse:
        old = self._service.held(call.bucket).settings
        settings = change_settings(old, call.json(), whole=whole)
        changed = self._service.patch_bucket(call.bucket, options, call.conditions())
        changed.settings = settings
        return self._shown(call, changed)

    def lock_retention(self, call: GcsCall) -> GcsResponse:
        """Lock the retention policy of a bucket for ever."""
        conditions = call.conditions()
        if conditions.metageneration_match is None:
            name = "ifMetagenerationMatch"
            raise refuse("required", f"Required parameter: {name}", location=name)
        return self._shown(call, self._service.lock_retention(call.bucket, conditions))

    def delete(self, call: GcsCall) -> GcsResponse:
        """Delete an empty bucket."""
        self._service.delete_bucket(call.bucket, call.conditions())
        return NO_CONTENT

    def policy(self, call: GcsCall) -> GcsResponse:
        """Return an IAM policy without bindings; policies are not stored."""
        bucket = self._service.get_bucket(call.bucket)
        given = call.json()
        shown = {
            "kind": "storage#policy",
            "resourceId": f"projects/_/buckets/{bucket.name}",
            "version": given.get("version", 1),
            "etag": bucket_etag(bucket),
            "bindings": given.get("bindings", []),
        }
        return json_answer(shown)

    def permissions(self, call: GcsCall) -> GcsResponse:
        """Return the caller's permissions among those requested."""
        self._service.get_bucket(call.bucket)
        denied, bucket = self._service.denied, call.bucket
        asked = call.query.get("permissions", "").split(",")
        held = [_ for _ in asked if _ and _ not in denied and f"{bucket}:{_}" not in denied]
        return json_answer({"kind": "storage#testIamPermissionsResponse", "permissions": held})

    def managed_folders(self, call: GcsCall) -> GcsResponse:
        """Return an empty list: there are no managed folders."""
        self._service.get_bucket(call.bucket)
        return json_answer({"kind": "storage#managedFolders"})


def chosen(call: GcsCall, shown: Json) -> GcsResponse:
    """Return the parts of a resource that the parameter ``fields`` selects."""
    fields = call.query.get("fields")
    return json_answer(shown if fields is None else select(shown, read_mask(fields)))
