"""Extend the control endpoint for Google Cloud Storage.

====================  =======================================================================
GET  buckets          name -> options, including quotas, of all buckets
PUT  buckets          create or change the given buckets, by the names of their options
GET, PUT denied       the permissions that callers lack: ``storage.objects.delete``; for one
                      bucket alone as ``BUCKET:storage.objects.delete``
====================  =======================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from asynccommit.errors import OptionError
from asynccommit.testing.emulators.control import Verb
from asynccommit.testing.emulators.gcs.config import read_bucket, show_bucket_options
from asynccommit.testing.models.gcs.model import BucketOptions, GcsBucket, GcsRefusal, GcsService


def verbs_of(service: Callable[[], GcsService]) -> dict[tuple[str, str], Verb]:
    """Return (method, name) -> handler.

    ``service`` returns the present service.
    """

    def buckets(_: Any) -> Any:
        shown = _all(service())
        return {name: show_bucket_options(found.options) for name, found in shown.items()}

    def set_buckets(given: Any) -> Any:
        if not isinstance(given, dict):
            raise ValueError("an object of names and options is needed")
        existing = _all(service())
        changed = {
            name: read_bucket(name, value, existing[name].options if name in existing else None)
            for name, value in given.items()
        }
        for name, options in changed.items():
            put_bucket(service(), name, options)
        return buckets(None)

    def denied(_: Any) -> Any:
        return sorted(service().denied)

    def set_denied(given: Any) -> Any:
        if not isinstance(given, list) or not all(isinstance(_, str) for _ in given):
            raise ValueError("a list of permissions is needed")
        service().denied = set(given)
        return denied(None)

    return {
        ("GET", "buckets"): buckets,
        ("PUT", "buckets"): set_buckets,
        ("GET", "denied"): denied,
        ("PUT", "denied"): set_denied,
    }


def put_bucket(service: GcsService, name: str, options: BucketOptions) -> None:
    """Create or change a bucket. Raises ``OptionError`` if invalid."""
    with _as_owner(service):
        try:
            existing = _all(service).get(name)
            if existing is None:
                service.create_bucket(name, options)
            elif changes := _changes(existing.options, options):
                service.patch_bucket(name, changes)
        except GcsRefusal as refusal:
            raise OptionError(f"bucket {name!r}: {refusal.message}") from None


def _changes(old: BucketOptions, new: BucketOptions) -> dict[str, Any]:
    both = {item.name: (getattr(old, item.name), getattr(new, item.name)) for item in fields(old)}
    return {name: value for name, (before, value) in both.items() if value != before}


def _all(service: GcsService) -> dict[str, GcsBucket]:
    found: dict[str, GcsBucket] = {}
    token: str | None = None
    with _as_owner(service):
        while token != "":
            page, token = service.list_buckets(page_token=token or "")
            found.update({bucket.name: bucket for bucket in page})
    return found


@contextmanager
def _as_owner(service: GcsService) -> Iterator[None]:
    """Grant all permissions inside the block."""
    denied, service.denied = service.denied, set()
    try:
        yield
    finally:
        service.denied = denied
