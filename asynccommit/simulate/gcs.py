"""Simulate commits on Google Cloud Storage without a network.

Requests are made and responses read as over HTTP; the JSON interface answers in process, over the
model of the service. The bucket has a limit on writes per second and five times that limit on
reads, which grow under load as Google documents; the store gets the same limits, as users configure
theirs.
"""

from __future__ import annotations

import sys
import zlib
from dataclasses import replace
from functools import partial
from typing import Any

from asynccommit.commit.layouts.layout import TEMPORARY
from asynccommit.simulate.model import PATIENCE, Site, StoreKind
from asynccommit.stores.base import Traits
from asynccommit.stores.gcs.store import GcsStore
from asynccommit.stores.http.base import Transport
from asynccommit.stores.urls import Address
from asynccommit.testing.emulators.gcs.app import GcsApp
from asynccommit.testing.emulators.gcs.inprocess import InProcess
from asynccommit.testing.models.fault_rules import FaultInjector
from asynccommit.testing.models.gcs.model import (
    BucketOptions,
    Content,
    GcsObject,
    GcsRefusal,
    GcsService,
)
from asynccommit.testing.models.gcs.quotas import FLAT, HIERARCHICAL, Quotas
from asynccommit.testing.models.gcs.refusals import GCS as DIALECT

BUCKET = "data"
READS = 5
"""Number of reads that a bucket accepts for each write."""

_TOO_MANY = 429


class _Bytes(bytes):
    """Bytes that are never read: only their number is kept."""

    many = 0

    @classmethod
    def of(cls, many: int) -> _Bytes:
        made = cls()
        made.many = many
        return made

    def __len__(self) -> int:
        return self.many


class Hollow(Content):
    """The declared content of a file."""

    __slots__ = ("_said",)

    def __init__(self, data: bytes, crc32c: int) -> None:
        super().__init__(data, components=1)  # Composed objects have no MD5.
        self._said = crc32c

    @property
    def crc32c(self) -> int:
        """See ``Content.crc32c``."""
        return self._said


class PackedGcs(Content):
    """Unchanging content stored compressed, such as a large manifest."""

    __slots__ = ("packed",)

    @property
    def data(self) -> bytes:
        """The decompressed bytes."""
        return zlib.decompress(self.packed)

    @data.setter
    def data(self, data: bytes) -> None:
        self.packed = zlib.compress(data, 1)


class _Service(GcsService):
    """The service with counts of rejected requests and written bytes."""

    refused = 0
    written = 0

    def admit(self, op: str, bucket: str, *names: str, user_project: str = "") -> None:
        """See ``GcsService.admit``."""
        try:
            super().admit(op, bucket, *names, user_project=user_project)
        except GcsRefusal as no:
            self.refused += no.status == _TOO_MANY
            raise

    def insert(self, bucket: str, name: str, data: bytes, **options: Any) -> GcsObject:
        """See ``GcsService.insert``."""
        made = super().insert(bucket, name, data, **options)
        self.written += len(data)
        return made

    def place(self, bucket: str, name: str, content: Content) -> GcsObject:
        """Create an object of any content, without permission or quota checks."""
        held = self._bucket(bucket)
        return self._make(held, name, content, held.plain, self.now())


class _GcsModelStore(GcsStore):
    """The store, for a job that may represent a larger one."""

    def __init__(self, address: Address, site: Site, transport: Transport) -> None:
        self._site = site
        limit = site.climate.limit
        options: dict[str, Any] = {"token": "anon", "max_concurrency": site.in_flight}
        if limit is None:
            options["ramp"] = False
        else:
            options.update(writes=limit.rate, reads=READS * limit.rate)
        super().__init__(address, options, environ={}, host=site.host, transport=transport)

    @property
    def traits(self) -> Traits:
        """The capabilities of this store."""
        return self._told

    @traits.setter
    def traits(self, traits: Traits) -> None:
        if traits.ramp is not None:
            traits = replace(traits, ramp=traits.ramp._replace(doubling=self._site.doubling))
        self._told = traits if self._site.whole else replace(traits, name_interval=0.0)


class Gcs:
    """One bucket; see ``Model``.

    Args:
        site: environment of the model.
        hns: with a hierarchical namespace.
    """

    renamed_directories = 0  # A commit moves no directory with files as a whole.

    def __init__(self, site: Site, *, hns: bool) -> None:
        host = site.host
        fair = replace(site.climate, limit=None)
        self.dest = Address("gs", BUCKET, "/table")
        self.service = _Service(now=host.now, new_id=site.seeds.ids("service"))
        self.weather = FaultInjector(site.seeds.rng("weather"), host.clock, fair, DIALECT)
        options = BucketOptions(hns=hns, quotas=_quotas(site))
        self._held = self.service.create_bucket(BUCKET, options)
        transport = InProcess(GcsApp(self.service), self.weather, patience=PATIENCE)
        self.store = _GcsModelStore(self.dest, site, transport)
        self._contents: dict[int, _Bytes] = {}

    @property
    def refused(self) -> int:
        """See ``Model.refused``."""
        return self.service.refused

    def put_file(self, path: str, size: int) -> str:
        """See ``Model.put_file``."""
        data = self._contents.get(size) or self._contents.setdefault(size, _Bytes.of(size))
        content = Hollow(data, zlib.crc32(path.rpartition("/")[2].encode()))
        made = self.service.place(BUCKET, path[1:], content)
        return f"{made.generation}-{content.crc32c:08x}"

    def put_data(self, path: str, data: bytes) -> None:
        """See ``Model.put_data``."""
        self.service.place(BUCKET, path[1:], PackedGcs(data))

    def put_directory(self, path: str) -> None:
        """See ``Model.put_directory``."""
        if self._held.options.hns:
            self._held.make_folders(f"{path[1:]}/", self.service.now())
        else:
            self.service.insert(BUCKET, f"{path[1:]}/", b"")

    def files_in(self, path: str) -> int:
        """See ``Model.files_in``."""
        return len(self._held.names.below(f"{path[1:]}/"))

    def size(self) -> int:
        """See ``Model.size``: the bytes written, and the names of moved files."""
        objects = self._held.objects
        moved = (name for name in objects if f"/{TEMPORARY}/" not in name)
        return self.service.written + sys.getsizeof(objects) + sum(map(sys.getsizeof, moved))


def _quotas(site: Site) -> Quotas:
    """Return the quotas of the bucket; the limit counts writes."""
    interval, limit = FLAT.name_interval if site.whole else None, site.climate.limit
    if limit is None:
        return Quotas(name_interval=interval)
    burst = limit.burst / limit.rate
    return Quotas(limit.rate, READS * limit.rate, site.doubling, burst, interval)


def _kind(name: str, quotas: Quotas, *, hns: bool) -> StoreKind:
    return StoreKind(
        name,
        partial(Gcs, hns=hns),
        DIALECT,
        limit=quotas.writes or 0.0,
        counted="writes",
        in_flight=256,
        doubling=quotas.doubling,
        schemes=("gs", "gcs"),
        folders=hns,
    )


GCS = _kind("gcs", FLAT, hns=False)
"""A bucket that had no load before, and ``max_concurrency`` of a store there."""

GCS_HNS = _kind("gcs-hns", HIERARCHICAL, hns=True)
"""The same with a hierarchical namespace."""
