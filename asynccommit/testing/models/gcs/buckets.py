"""Manage the buckets of the service, and share code of all its operations."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple, Self

from asynccommit.testing.models.gcs.bucket import BucketOptions, GcsBucket
from asynccommit.testing.models.gcs.hmac_keys import HmacKeys
from asynccommit.testing.models.gcs.listing import (
    MOST_RESULTS,
    check_most,
    decode_token,
    encode_token,
)
from asynccommit.testing.models.gcs.preconditions import (
    NO_PRECONDITIONS,
    Preconditions,
    check_metageneration,
)
from asynccommit.testing.models.gcs.refusals import GcsRefusal, refuse

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]").fullmatch
_LONGEST_PART = 63
_OPTIONS = {field.name for field in fields(BucketOptions)}


class GcsLimits(NamedTuple):
    """The limits that split long operations.

    Attributes:
        page: maximum number of entries on one page of a listing.
        empty_pages: every listing begins with a page that has only a token.
        rewrite_bytes: maximum number of bytes that one call of a rewrite copies; 0 for no limit.
        operation_seconds: duration of a folder rename.
    """

    page: int = MOST_RESULTS
    empty_pages: bool = False
    rewrite_bytes: int = 0
    operation_seconds: float = 0.0


_NO_LIMITS = GcsLimits()


class GcsBuckets:
    """The buckets of one project, with permissions and quotas.

    Args: see ``Service``.

    Attributes:
        now: the server's clock, seconds since the epoch.
        new_id: creates operation ids.
        limits: limits that split long operations; may be replaced at any time.
        denied: permissions that the caller lacks, such as ``storage.objects.delete``; for one
            bucket alone ``bucket:storage.objects.delete``. May be changed at any time.
        principal: name of the caller, for messages.
        project: id of the project.
    """

    def __init__(
        self,
        *,
        now: Callable[[], float],
        new_id: Callable[[], str],
        limits: GcsLimits = _NO_LIMITS,
        project: str = "project",
        principal: str = "committer@project.iam.gserviceaccount.com",
    ) -> None:
        self.now = now
        self.new_id = new_id
        self.limits = limits
        self.project = project
        self.principal = principal
        self.denied: set[str] = set()
        self.hmac_keys = HmacKeys(now, new_id)
        self._buckets: dict[str, GcsBucket] = {}
        self._generation = 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._buckets)})"

    def dump(self) -> Mapping[str, Any]:
        """Return what is stored, shared and not copied."""
        return {
            "buckets": self._buckets,
            "generation": self._generation,
            "hmac_keys": self.hmac_keys.dump(),
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Store what ``dump`` returned."""
        self._buckets, self._generation = state["buckets"], state["generation"]
        self.hmac_keys.load(state.get("hmac_keys", {}))
        for bucket in self._buckets.values():  # of an earlier version
            vars(bucket).setdefault("notifications", {})
            vars(bucket).setdefault("retention_locked", False)
            vars(bucket).setdefault("settings", {})

    def admit(self, op: str, bucket: str, *names: str, user_project: str = "") -> None:
        """Admit a request before it is executed.

        The wire layer calls it once for each.

        Rejected if the bucket's quota is exceeded (429), or if the requester must pay and names no
        project (400). The operations themselves do not call it, so that test setup uses neither
        quota nor billing. A missing bucket admits.

        Args:
            op: a fault dialect operation, ``insert``, ``move``, ...
            bucket: name of the bucket.
            names: objects that the request changes.
            user_project: project to bill.
        """
        found = self._buckets.get(bucket)
        if found is None:
            return
        if found.options.requester_pays and not user_project:
            # The reason is as it was seen on the wire; the table of errors has another.
            raise refuse(
                "required", "Bucket is a requester pays bucket but no user project provided."
            )
        if found.meter is not None:
            found.meter.check(op, names, self.now())

    def create_bucket(self, name: str, options: BucketOptions | None = None) -> GcsBucket:
        """Create a bucket; rejected if it exists (409) or the name is invalid (400)."""
        self._permit("storage.buckets.create", name, "bucket")
        if not _NAME(name) or any(len(part) > _LONGEST_PART for part in name.split(".")):
            raise refuse("invalid", f"Invalid bucket name: '{name}'")
        if name in self._buckets:
            raise refuse(
                "conflict",
                "Your previous request to create the named bucket succeeded and you already own "
                "it.",
            )
        made = GcsBucket(name, _checked(options or BucketOptions()), self.now())
        self._buckets[name] = made
        return made

    def get_bucket(self, name: str, preconditions: Preconditions = NO_PRECONDITIONS) -> GcsBucket:
        """Return a bucket. Rejected if it does not exist (404)."""
        self._permit("storage.buckets.get", name, "bucket")
        found = self._bucket(name)
        check_metageneration(found, preconditions, reading=True)
        return found

    def storage_layout(self, name: str) -> GcsBucket:
        """Return a bucket for its location and namespace.

        It requires a different permission. Source:
        https://cloud.google.com/storage/docs/getting-storage-layout
        """
        self._permit("storage.objects.list", name, "bucket")
        return self._bucket(name)

    def held(self, name: str) -> GcsBucket:
        """Return a bucket without a permission check."""
        return self._bucket(name)

    def patch_bucket(
        self,
        name: str,
        changes: Mapping[str, Any],
        preconditions: Preconditions = NO_PRECONDITIONS,
    ) -> GcsBucket:
        """Change the given fields of a bucket's options."""
        self._permit("storage.buckets.update", name, "bucket")
        found = self._bucket(name)
        check_metageneration(found, preconditions)
        if not changes.keys() <= _OPTIONS or changes.get("hns", found.options.hns) != (
            found.options.hns
        ):
            raise refuse("invalid")
        if found.retention_locked and changes.get("retention", found.options.retention) < (
            found.options.retention
        ):  # documented; the reason is inferred
            raise refuse("forbidden", "A locked retention policy cannot be removed or shortened.")
        found.configure(_checked(replace(found.options, **changes)))
        found.metageneration += 1
        found.updated = self.now()
        return found

    def lock_retention(self, name: str, preconditions: Preconditions) -> GcsBucket:
        """Lock the retention policy of a bucket. Rejected if there is none (400)."""
        self._permit("storage.buckets.update", name, "bucket")
        found = self._bucket(name)
        check_metageneration(found, preconditions)
        if not found.options.retention:
            raise refuse("invalid", "The bucket has no retention policy.")
        found.retention_locked = True
        found.metageneration += 1
        found.updated = self.now()
        return found

    def delete_bucket(self, name: str, preconditions: Preconditions = NO_PRECONDITIONS) -> None:
        """Delete a bucket. Rejected if it is not empty (409)."""
        self._permit("storage.buckets.delete", name, "bucket")
        found = self._bucket(name)
        check_metageneration(found, preconditions)
        if found.objects or found.noncurrent or found.folders:
            raise refuse("conflict", "The bucket you tried to delete is not empty.")
        del self._buckets[name]

    def list_buckets(
        self, prefix: str = "", page_token: str = "", max_results: int | None = None
    ) -> tuple[list[GcsBucket], str]:
        """Return one page of the buckets by name, and the next token, ``""`` on the last page."""
        self._permit("storage.buckets.list", self.project, "project")
        most = check_most(max_results, self.limits.page)
        after = decode_token(page_token)[0] if page_token else ""
        names = [name for name in sorted(self._buckets) if name > after and name.startswith(prefix)]
        token = encode_token((names[most - 1], 0, 0)) if names[most:] else ""
        return [self._buckets[name] for name in names[:most]], token

    def copy(self) -> Self:
        """Return a service with the same content, which shares the objects.

        The objects never change. The same holds for a subclass: its own attributes are shared, as
        are ``now`` and ``new_id``.
        """
        made = copy.copy(self)
        made.denied = set(self.denied)
        made._buckets = {name: bucket.copy() for name, bucket in self._buckets.items()}
        return made

    # --- shared by the operations --------------------------------------------------------------

    def _bucket(self, name: str) -> GcsBucket:
        found = self._buckets.get(name)
        if found is None:
            raise refuse("notFound", "The specified bucket does not exist.")
        if found.pending:
            self._settle(found)
        return found

    def _settle(self, bucket: GcsBucket) -> None:
        """Complete the folder renames that are due."""
        raise NotImplementedError

    def _permit(self, permission: str, bucket: str, kind: str = "object") -> None:
        """Check the caller's permission."""
        if self.denied and (permission in self.denied or f"{bucket}:{permission}" in self.denied):
            raise self._forbidden(permission, kind)

    def _forbidden(self, permission: str, kind: str) -> GcsRefusal:
        return refuse(
            "forbidden",
            f"{self.principal} does not have {permission} access to the Google Cloud Storage "
            f"{kind}. Permission '{permission}' denied on resource (or it may not exist).",
        )

    def _next_generation(self, now: float) -> int:
        """Return a new generation: above all earlier ones, and based on ``now``."""
        self._generation = max(self._generation + 1, int(now * 1e6))
        return self._generation


def _checked(options: BucketOptions) -> BucketOptions:
    if options.hns and options.versioning:  # documented: one or the other
        raise refuse("invalid", "Object versioning is not supported with hierarchical namespace.")
    if options.zonal and not options.hns:  # documented
        raise refuse("invalid", "A zonal bucket needs a hierarchical namespace.")
    return options
