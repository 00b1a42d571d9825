"""Map URLs to operations: the route table of the JSON API."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from asynccommit.testing.emulators.gcs.buckets import BucketRoutes
from asynccommit.testing.emulators.gcs.call import GcsRoute, Query
from asynccommit.testing.emulators.gcs.folders import FolderRoutes
from asynccommit.testing.emulators.gcs.objects import Objects
from asynccommit.testing.emulators.gcs.projects import ProjectRoutes
from asynccommit.testing.emulators.gcs.uploads import UploadRoutes
from asynccommit.testing.models.gcs.model import refuse

# Verb, path with * for a name, Google's name without storage., the weather's name, handler.
_TABLE = """
GET    b                             buckets.list               bucket    buckets.list
POST   b                             buckets.insert             bucket    buckets.insert
GET    b/*                           buckets.get                bucket    buckets.get
PATCH  b/*                           buckets.patch              bucket    buckets.patch
PUT    b/*                           buckets.update             bucket    buckets.update
DELETE b/*                           buckets.delete             bucket    buckets.delete
GET    b/*/storageLayout             buckets.getStorageLayout   layout    buckets.layout
GET    b/*/iam                       buckets.getIamPolicy       bucket    buckets.policy
PUT    b/*/iam                       buckets.setIamPolicy       bucket    buckets.policy
GET    b/*/iam/testPermissions       buckets.testIamPermissions bucket    buckets.permissions
POST   b/*/lockRetentionPolicy       buckets.lockRetentionPolicy bucket   buckets.lock_retention
GET    b/*/notificationConfigs       notifications.list bucket rest.list_notifications
POST   b/*/notificationConfigs       notifications.insert bucket rest.create_notification
GET    b/*/notificationConfigs/*     notifications.get bucket rest.get_notification
DELETE b/*/notificationConfigs/*     notifications.delete bucket rest.delete_notification
GET    projects/*/serviceAccount     serviceaccount.get         bucket    rest.service_account
GET    projects/*/hmacKeys           hmacKey.list               bucket    rest.list_keys
POST   projects/*/hmacKeys           hmacKey.create             bucket    rest.create_key
GET    projects/*/hmacKeys/*         hmacKey.get                bucket    rest.get_key
PUT    projects/*/hmacKeys/*         hmacKey.update             bucket    rest.update_key
DELETE projects/*/hmacKeys/*         hmacKey.delete             bucket    rest.delete_key
GET    b/*/managedFolders            managedFolders.list        folder    buckets.managed_folders
GET    b/*/acl                       bucketAccessControls.list  bucket    objects.acl
POST   b/*/acl                       bucketAccessControls.insert bucket   objects.acl
GET    b/*/defaultObjectAcl          defaultObjectAccessControls.list bucket objects.acl
POST   b/*/defaultObjectAcl          defaultObjectAccessControls.insert bucket objects.acl
GET    b/*/o/*/acl                   objectAccessControls.list  get       objects.acl
POST   b/*/o/*/acl                   objectAccessControls.insert patch    objects.acl
GET    b/*/o                         objects.list               list      objects.list
GET    b/*/o/*                       objects.get                get       objects.get
PATCH  b/*/o/*                       objects.patch              patch     objects.patch
PUT    b/*/o/*                       objects.update             patch     objects.update
DELETE b/*/o/*                       objects.delete             delete    objects.delete
POST   b/*/o/*/compose               objects.compose            compose   objects.compose
POST   b/*/o/*/restore               objects.restore            patch     objects.restore
POST   b/*/o/*/moveTo/o/*            objects.move               move      objects.move
POST   b/*/o/*/rewriteTo/b/*/o/*     objects.rewrite            rewrite   objects.rewrite
POST   b/*/o/*/copyTo/b/*/o/*        objects.copy               rewrite   objects.copy
GET    b/*/folders                   folders.list               folder    folders.list
POST   b/*/folders                   folders.insert             folder    folders.insert
GET    b/*/folders/*                 folders.get                folder    folders.get
DELETE b/*/folders/*                 folders.delete             folder    folders.delete
POST   b/*/folders/*/renameTo/folders/* folders.rename             rename_folder folders.rename
GET    b/*/operations                buckets.operations.list    operation folders.operations
GET    b/*/operations/*              buckets.operations.get     operation folders.operation
POST   b/*/operations/*/cancel       buckets.operations.cancel  operation folders.cancel
"""

_ASKS = {
    "patch": (0, 1),
    "delete": (0, 1),
    "compose": (0, 1),
    "move": (0, 1, 2),
    "rewrite": (2, 3),
}
_Key = tuple[str, str, int, str, str]


class MatchedRoute(NamedTuple):
    """A route with its fixed URL segments and positions of names."""

    route: GcsRoute
    literals: tuple[tuple[int, str], ...]
    names: tuple[int, ...]


class Routes:
    """A router that finds the route of a URL; the route groups handle it."""

    def __init__(
        self,
        objects: Objects,
        buckets: BucketRoutes,
        folders: FolderRoutes,
        uploads: UploadRoutes,
        rest: ProjectRoutes,
    ) -> None:
        groups = {"objects": objects, "buckets": buckets, "folders": folders, "rest": rest}
        self._found: dict[_Key, MatchedRoute] = {}
        for line in _TABLE.strip().splitlines():
            verb, path, method, op, handler = line.split()
            group, _, name = handler.partition(".")
            segments = path.split("/")
            asks = _ASKS.get(op, (0,)) if segments[:2] == ["b", "*"] else ()
            route = GcsRoute(op, f"storage.{method}", getattr(groups[group], name), asks=asks)
            self._found[_key(verb, segments)] = _found(route, segments)
        media = GcsRoute("read", "storage.objects.get", objects.read, media=True)
        self.media = _found(media, ("b", "*", "o", "*"))
        insert = "storage.objects.insert"
        self._whole = GcsRoute("insert", insert, uploads.insert, uploads.read_whole, (0, 1))
        self._start = GcsRoute("upload", insert, uploads.start, uploads.read_start)
        # The new object is admitted when its last chunk arrives.
        self._chunk = GcsRoute("upload", insert, uploads.append, uploads.read_chunk, ())
        self._cancel = GcsRoute(
            "upload", "storage.objects.delete", uploads.cancel, uploads.read_chunk, ()
        )

    @property
    def methods(self) -> frozenset[str]:
        """Google's names of all operations."""
        return frozenset({_.route.method for _ in self._found.values()}) | {self._whole.method}

    def find(
        self, verb: str, segments: Sequence[str], query: Query
    ) -> tuple[GcsRoute, tuple[str, ...]]:
        """Return the route of a URL below ``/storage/v1``, and its encoded names.

        Raises ``GcsRefusal`` if there is none.
        """
        found = self._found.get(_key(verb, segments))
        if found is None:
            raise self._unknown(verb, segments)
        route, literals, names = found
        for at, text in literals:
            if segments[at] != text:
                raise refuse("notFound")
        if route.op == "get" and query.get("alt") == "media":
            route = self.media.route
        return route, tuple([segments[at] for at in names])

    def _unknown(self, verb: str, segments: Sequence[str]) -> Exception:
        verbs = ("GET", "POST", "PATCH", "PUT", "DELETE")
        others = [_ for _ in verbs if _ != verb and _key(_, segments) in self._found]
        return refuse("methodNotAllowed" if others else "notFound")

    def find_upload(self, verb: str, query: Query) -> GcsRoute:
        """Return the route of a URL below ``/upload``. Raises ``GcsRefusal``."""
        if "upload_id" in query:
            if verb == "DELETE":
                return self._cancel
            if verb in ("PUT", "POST"):
                return self._chunk
        kind = query.get("uploadType")
        if verb == "PUT":  # inferred: as Google's storage-testbench
            raise refuse("required", "Required parameter: upload_id", location="upload_id")
        if verb != "POST":
            raise refuse("methodNotAllowed")
        if kind in ("media", "multipart"):
            return self._whole
        if kind == "resumable":
            return self._start
        raise refuse("invalid", f"Invalid upload type: {kind}", location="uploadType")


def _key(verb: str, segments: Sequence[str]) -> _Key:
    count = len(segments)
    return (
        verb,
        segments[0],
        count,
        segments[2] if count > 2 else "",
        segments[4] if count > 4 else "",
    )


def _found(route: GcsRoute, segments: Sequence[str]) -> MatchedRoute:
    names = tuple(at for at, text in enumerate(segments) if text == "*")
    literals = tuple((at, text) for at, text in enumerate(segments) if text != "*")
    return MatchedRoute(route, tuple(_ for _ in literals if _[0] not in (0, 2, 4)), names)
