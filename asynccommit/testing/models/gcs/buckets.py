"""The buckets of the service, and what all its operations share."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple, Self

from asynccommit.testing.models.gcs.bucket import BucketOptions, GcsBucket
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
    """How the service shares out long work.

    Attributes:
        page: most entries of one page of a listing.
        empty_pages: every listing begins with a page of nothing but a token.
        rewrite_bytes: most bytes that one call of a rewrite copies; 0 is no bound.
        operation_seconds: how long the rename of a folder takes.
    """

    page: int = MOST_RESULTS
    empty_pages: bool = False
    rewrite_bytes: int = 0
    operation_seconds: float = 0.0


_NO_LIMITS = GcsLimits()


class GcsBuckets:
    """The buckets of one project, and what guards them.

    Args: see ``Service``.

    Attributes:
        now: the server's clock, seconds since the epoch.
        new_id: makes the ids of operations.
        limits: how long work is shared out; may be replaced at any time.
        denied: the permissions that the caller lacks, ``storage.objects.delete``, ...; of one
            bucket alone as ``bucket:storage.objects.delete``. May be changed at any time.
        principal: the caller's name, for messages.
        project: the project's id.
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
        self._buckets: dict[str, GcsBucket] = {}
        self._generation = 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._buckets)})"

    def admit(self, op: str, bucket: str, *names: str, user_project: str = "") -> None:
        """Let a request in, before it is looked at: whoever speaks the wire asks once for each.

        Refused if the bucket takes no more such requests now (429) or the requester is to pay
        and names no project (400). The verbs themselves do not ask, so that whoever prepares a
        test has neither quota nor bill. A bucket that is not there admits.

        Args:
            op: one of the weather's operations, ``insert``, ``move``, ...
            bucket: its name.
            names: the objects that it changes.
            user_project: to be billed.
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
        """Make a bucket. Refused if there is one (409) or the name is none (400)."""
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
        """Return a bucket. Refused if there is none (404)."""
        self._permit("storage.buckets.get", name, "bucket")
        found = self._bucket(name)
        check_metageneration(found, preconditions, reading=True)
        return found

    def storage_layout(self, name: str) -> GcsBucket:
        """Return a bucket for its location and namespace, which needs another permission.

        Source: https://cloud.google.com/storage/docs/getting-storage-layout
        """
        self._permit("storage.objects.list", name, "bucket")
        return self._bucket(name)

    def held(self, name: str) -> GcsBucket:
        """Return a bucket as it is, for checks: no permission is needed."""
        return self._bucket(name)

    def patch_bucket(
        self,
        name: str,
        changes: Mapping[str, Any],
        preconditions: Preconditions = NO_PRECONDITIONS,
    ) -> GcsBucket:
        """Change fields of a bucket's options, by their names there."""
        self._permit("storage.buckets.update", name, "bucket")
        found = self._bucket(name)
        check_metageneration(found, preconditions)
        if not changes.keys() <= _OPTIONS or changes.get("hns", found.options.hns) != (
            found.options.hns
        ):
            raise refuse("invalid")
        found.configure(_checked(replace(found.options, **changes)))
        found.metageneration += 1
        found.updated = self.now()
        return found

    def delete_bucket(self, name: str, preconditions: Preconditions = NO_PRECONDITIONS) -> None:
        """Delete a bucket. Refused if it is not empty (409)."""
        self._permit("storage.buckets.delete", name, "bucket")
        found = self._bucket(name)
        check_metageneration(found, preconditions)
        if found.objects or found.noncurrent or found.folders:
            raise refuse("conflict", "The bucket you tried to delete is not empty.")
        del self._buckets[name]

    def list_buckets(
        self, prefix: str = "", page_token: str = "", max_results: int | None = None
    ) -> tuple[list[GcsBucket], str]:
        """Return one page of the buckets by name, and the token of the next, ``""`` if none."""
        self._permit("storage.buckets.list", self.project, "project")
        most = check_most(max_results, self.limits.page)
        after = decode_token(page_token)[0] if page_token else ""
        names = [name for name in sorted(self._buckets) if name > after and name.startswith(prefix)]
        token = encode_token((names[most - 1], 0, 0)) if names[most:] else ""
        return [self._buckets[name] for name in names[:most]], token

    def copy(self) -> Self:
        """Return a service with the same content, that shares the objects, which never change.

        Of a subclass too: what that adds is shared, as are ``now`` and ``new_id``.
        """
        made = copy.copy(self)
        made.denied = set(self.denied)
        made._buckets = {name: bucket.copy() for name, bucket in self._buckets.items()}
        return made

    # --- what the operations share -------------------------------------------------------------

    def _bucket(self, name: str) -> GcsBucket:
        found = self._buckets.get(name)
        if found is None:
            raise refuse("notFound", "The specified bucket does not exist.")
        if found.pending:
            self._settle(found)
        return found

    def _settle(self, bucket: GcsBucket) -> None:
        """Let renames of folders take effect that are due."""
        raise NotImplementedError

    def _permit(self, permission: str, bucket: str, kind: str = "object") -> None:
        """Refuse what the caller may not."""
        if self.denied and (permission in self.denied or f"{bucket}:{permission}" in self.denied):
            raise self._forbidden(permission, kind)

    def _forbidden(self, permission: str, kind: str) -> GcsRefusal:
        return refuse(
            "forbidden",
            f"{self.principal} does not have {permission} access to the Google Cloud Storage "
            f"{kind}. Permission '{permission}' denied on resource (or it may not exist).",
        )

    def _next_generation(self, now: float) -> int:
        """Return a new generation: later than all before it, and of this time if it can be."""
        self._generation = max(self._generation + 1, int(now * 1e6))
        return self._generation


def _checked(options: BucketOptions) -> BucketOptions:
    if options.hns and options.versioning:  # documented: one or the other
        raise refuse("invalid", "Object versioning is not supported with hierarchical namespace.")
    return options
