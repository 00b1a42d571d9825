"""Stores on directory buckets of the emulator, in this process."""

from __future__ import annotations

import itertools
from typing import Any

from asynccommit.runtime.host import Host, this_host
from asynccommit.stores.s3.renaming_store import S3RenamingStore
from asynccommit.stores.urls import parse_url
from asynccommit.testing.emulators.s3_express.app import ExpressApp
from asynccommit.testing.emulators.s3_express.inprocess import ExpressInProcess
from asynccommit.testing.models.s3.directory_bucket import DirectoryRules, DirectoryService
from asynccommit.testing.models.s3.uploads import UploadRules

BUCKET = "data--use1-az4--x-s3"
URL = f"s3://{BUCKET}/"
OPTIONS: dict[str, Any] = {"region": "us-east-1", "key": "test", "secret": "test"}
SWITCHES: dict[str, DirectoryRules] = {
    "etags stay": DirectoryRules(),
    "new etags": DirectoryRules(keeps_etag=False),
    "tokens are forgotten": DirectoryRules(remembers=0, missing="PreconditionFailed"),
    "tokens last": DirectoryRules(remembers=1e9, keeps_etag=False, missing="PreconditionFailed"),
}
"""The undocumented points, each both ways."""


def new_service(
    switches: DirectoryRules | None = None, *, host: Host | None = None, page: int = 1000
) -> DirectoryService:
    """Return a service with one bucket, whose parts may have any size."""
    host, count = host or this_host(), itertools.count()
    service = DirectoryService(now=host.now, new_id=lambda: f"id-{next(count)}")
    service.create_bucket(BUCKET, switches, UploadRules(smallest_part=1, page=page))
    return service


def new_store(service: DirectoryService, **options: Any) -> S3RenamingStore:
    """Return a store over the service."""
    transport = ExpressInProcess(ExpressApp(service))
    given = {**OPTIONS, **options}
    return S3RenamingStore(parse_url(URL), given, environ={}, transport=transport)
