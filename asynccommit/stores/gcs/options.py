"""Options of a store on Google Cloud Storage, under all their names.

Three families of names are read: those of fsspec and gcsfs (``token``, ``project``), those of
Hadoop (``fs.gs.auth.type``, with ``spark.hadoop.`` in front or not), and the environment's
(``STORAGE_EMULATOR_HOST``). The environment counts only for options that are not set.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any

from asynccommit.errors import OptionError
from asynccommit.stores.base import Ramp
from asynccommit.stores.gcs.credentials import GcsCredential, credential_of, opener
from asynccommit.stores.gcs.endpoint import GcsEndpoint, find_place
from asynccommit.stores.gcs.hadoop import PREFIX, SHARED, GcsConnectorOptions
from asynccommit.stores.http.base import HttpSettings
from asynccommit.stores.http.options import (
    CONNECTIONS,
    LARGEST,
    WORDS,
    OptionNames,
    count,
    customer_key,
    flag,
    http_settings,
    number,
    text,
)
from asynccommit.stores.urls import Address

KNOWN = frozenset(
    {
        "project",
        "access",
        "token",
        "endpoint_url",
        "requester_pays",
        "requests_timeout",
        "timeout",
        "connection_timeout",
        "read_timeout",
        "max_concurrency",
        "proxy",
        "ca_file",
        "http_library",
        "client",
        "move",
        "hns",
        "ramp",
        "reads",
        "writes",
        "kms_key_name",
        "encryption_key",
        "chunk",
    }
)
"""Options that have an effect here, Hadoop's apart."""

NAMES = OptionNames(
    store="Google Cloud Storage",
    known=KNOWN,
    hadoop=(PREFIX, SHARED),
    foreign=("fs.azure.", "fs.s3a."),
    passed_over=frozenset(
        {
            "asynchronous",
            "loop",
            "block_size",
            "blocksize",
            "cache_timeout",
            "cache_type",
            "check_connection",
            "default_block_size",
            "default_cache_type",
            "default_fill_cache",
            "default_location",
            "experimental_zb_hns_support",
            "listings_expiry_time",
            "max_paths",
            "secure_serialize",
            "skip_instance_cache",
            "use_listings_cache",
        }
    ),
    no_effect={
        "consistency": (
            ("none",),
            "the service checks uploads, and etags identify the written content",
        ),
        "version_aware": (("false", "0"), "only the live version of an object is read or replaced"),
        "session_kwargs": (("{}",), "use proxy, ca_file, timeout or max_concurrency"),
        "batch_size": ((), "deletes are sent in batches of 100, all other requests one by one"),
    },
    elsewhere={
        "anon": "use token='anon'",
        "anonymous": "use token='anon'",
        "credential": "use token",
        "credentials": "use token",
        "service_account": "use token",
        "service_account_key": "use token",
        "service_account_path": "use token",
        "user_project": "use requester_pays",
        "endpoint": "use endpoint_url",
        "account_name": "is this a gs:// URL?",
    },
)
_PROJECTS = ("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "GCSFS_DEFAULT_PROJECT")
_PROJECT = re.compile(r"(?:[a-z0-9.-]+:)?[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
_FOLDERS_KEY = "hierarchical.namespace.folders.enable"
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
_OWN_HEADERS = frozenset(
    {"authorization", "host", "content-length", "content-type", "transfer-encoding", "connection"}
)
_WORKERS = 256  # at 50 ms a response, what a bucket takes that has not been asked for much yet
_BATCH, _PAGE = 100, 1000  # the most that the service takes; and what it gives, if not asked
_QUARTER = 1 << 18  # an upload goes in pieces of whole multiples of this
_MEGABYTE = 1 << 20  # and a rewrite of this
_CHUNK = 8 << 20
_READS, _WRITES, _DOUBLING = 5000.0, 1000.0, 1200.0  # of a bucket that nobody asked for much yet
_FOLDERS = 8  # times as much where there are folders


@dataclass(frozen=True, slots=True)
class GcsSettings:
    """The settings of a store on Google Cloud Storage.

    Attributes:
        place: the bucket, and the URL for requests.
        credential: authorises requests.
        http: settings of the transport.
        library: the HTTP library to use; ``None`` for the fastest.
        hierarchical: whether the bucket has folders; ``None`` to ask the service.
        move: whether an object may be moved by one request; if not, it is rewritten and deleted.
        ramp: whether the rate may only grow slowly; ``None`` means only on Google's service.
        reads: read requests a second at the start; ``None`` for the default of such buckets.
        writes: write requests a second at the start; ``None`` for the default of such buckets.
        workers: requests in flight.
        batch: deletes in one batch.
        page: entries of a page of a listing.
        chunk: bytes of one upload request; larger content is sent in several requests.
        rewrite_chunk: bytes of one rewrite request; 0 leaves that to the service.
        user_project: the project that pays; empty for the bucket's own.
        kms_key_name: the key that encrypts written objects; empty for the bucket's default.
        write_headers: headers with a customer's key, for requests that read or write content.
        source_headers: headers with a customer's key, for the source of a rewrite.
        headers: additional headers of every request.
        client: the user's client that sends, with the library ``sdk``; ``None`` to make one.
    """

    place: GcsEndpoint
    credential: GcsCredential = field(repr=False)
    http: HttpSettings
    library: str | None = None
    hierarchical: bool | None = None
    move: bool = True
    ramp: bool | None = None
    reads: float | None = None
    writes: float | None = None
    workers: int = _WORKERS
    batch: int = _BATCH
    page: int = _PAGE
    chunk: int = _CHUNK
    rewrite_chunk: int = 0
    user_project: str = ""
    kms_key_name: str = ""
    write_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    source_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    client: Any = field(default=None, repr=False)

    def ramp_for(self, hierarchical: bool) -> Ramp | None:
        """Return how fast the rate may grow, given whether the bucket has folders."""
        if not (self.place.real if self.ramp is None else self.ramp):
            return None
        times = _FOLDERS if hierarchical else 1
        reads, writes = self.reads or _READS * times, self.writes or _WRITES * times
        return Ramp(reads, writes, _DOUBLING)


def read_settings(
    address: Address,
    options: Mapping[str, Any],
    *,
    environ: Mapping[str, str],
    now: Callable[[], float],
) -> GcsSettings:
    """Return the settings of the store that holds ``address``.

    This reads no file and sends no request; the first request of the store does.

    Args:
        address: its authority is the bucket.
        options: of the three families, or of none.
        environ: the environment.
        now: seconds since the epoch.

    Raises:
        OptionError: an option is unknown, cannot be read, or contradicts another.
        UnsupportedError: the kind of credentials is not supported, or a library is missing.
    """
    checked, conf = NAMES.sort(options)
    hadoop = GcsConnectorOptions(conf)
    library = text(checked, "http_library")
    place = find_place(
        address, _endpoint(checked, hadoop), hadoop.get("storage.service.path"), environ
    )
    workers = count(checked, "max_concurrency", CONNECTIONS) or _WORKERS
    http = http_settings(checked, workers, hadoop)
    written, source = _encryption(checked, hadoop, place)
    move = flag(checked, "move")
    ramp, reads, writes = _ramp(checked)
    return GcsSettings(
        place=place,
        credential=credential_of(checked, hadoop, place, opener(http, library), environ, now),
        http=http,
        library=library,
        hierarchical=_hierarchical(checked, hadoop),
        move=hadoop.flag("operation.move.enable") is not False if move is None else move,
        ramp=ramp,
        reads=reads,
        writes=writes,
        workers=workers,
        batch=min(hadoop.count("max.requests.per.batch") or _BATCH, _BATCH),
        page=min(hadoop.count("list.max.items.per.call") or _PAGE, 5 * _PAGE),
        chunk=_chunk(checked, hadoop),
        rewrite_chunk=_whole(hadoop.size("rewrite.max.chunk.size") or 0, _MEGABYTE),
        user_project=_payer(checked, hadoop, place.bucket, environ),
        kms_key_name=_kms(checked, written),
        write_headers=written,
        source_headers=source,
        headers=_headers(hadoop),
        client=checked.get("client"),
    )


def _endpoint(options: Mapping[str, Any], hadoop: GcsConnectorOptions) -> tuple[str, str] | None:
    given = {
        "endpoint_url": str(options.get("endpoint_url", "")),
        f"{PREFIX}storage.root.url": hadoop.get("storage.root.url"),
    }
    return next(((name, url) for name, url in given.items() if url), None)


# --- how requests are sent -------------------------------------------------------------------


def _headers(hadoop: GcsConnectorOptions) -> dict[str, str]:
    found = hadoop.headers()
    for name, value in found.items():
        if not _HEADER.fullmatch(name) or not (value.isascii() and value.isprintable()):
            raise OptionError(f"{PREFIX}storage.http.headers.{name[:100]} is not a header")
        if name.lower() in _OWN_HEADERS:
            raise OptionError(f"{PREFIX}storage.http.headers.{name} cannot be set by options")
    return {name.lower(): value for name, value in found.items()}


# --- what requests ask for -------------------------------------------------------------------


def _hierarchical(options: Mapping[str, Any], hadoop: GcsConnectorOptions) -> bool | None:
    """Return whether the bucket has folders, by fsspec's option.

    Hadoop's key is only validated: it configures Hadoop's client and does not describe the bucket.
    """
    hadoop.flag(_FOLDERS_KEY)
    return flag(options, "hns")


def _ramp(options: Mapping[str, Any]) -> tuple[bool | None, float | None, float | None]:
    """Return whether the rate grows slowly, and the initial rates.

    These are the rates of reads and of writes.
    """
    rate = partial(number, options, what="requests a second")
    reads, writes = rate("reads"), rate("writes")
    word = str(options.get("ramp", "")).lower()
    if not word or word in WORDS:
        ramp = flag(options, "ramp")
    elif writes is not None:
        raise OptionError("ramp and writes both set a rate: set ramp=true, or leave one out")
    else:
        ramp, writes = True, rate("ramp")
        reads = reads or (writes or 0.0) * _READS / _WRITES
    if (reads or writes) and ramp is False:
        raise OptionError("reads and writes set the start of a ramp, but ramp is false")
    return (True if reads or writes else ramp), reads, writes


def _chunk(options: Mapping[str, Any], hadoop: GcsConnectorOptions) -> int:
    chunk = (
        count(options, "chunk", LARGEST)
        or hadoop.size("outputstream.upload.chunk.size", LARGEST)
        or _CHUNK
    )
    return _whole(chunk, _QUARTER)


def _payer(
    options: Mapping[str, Any], hadoop: GcsConnectorOptions, bucket: str, environ: Mapping[str, str]
) -> str:
    """Return the project that pays for requests; empty for the bucket's own."""
    given = options.get("requester_pays")
    words = str(given).strip()
    pays = hadoop.payer(bucket) if given is None else WORDS.get(words.lower(), words)
    if pays is False:
        return ""
    projects = (options.get("project"), hadoop.get("project.id"), *map(environ.get, _PROJECTS))
    project = str(next(filter(None, projects), "")) if pays is True else pays
    if not project:
        raise OptionError("requester_pays is true, but no project is named: set project")
    if not _PROJECT.fullmatch(project):
        raise OptionError(
            f"{project[:100]!r} is not a project id: expected lower-case letters, digits and "
            "hyphens in requester_pays and project"
        )
    return project


def _encryption(
    options: Mapping[str, Any], hadoop: GcsConnectorOptions, place: GcsEndpoint
) -> tuple[dict[str, str], dict[str, str]]:
    name, key = "encryption_key", options.get("encryption_key")
    digest = algorithm = ""
    if key is None:
        name, key = f"{PREFIX}encryption.key", hadoop.get("encryption.key")
        digest, algorithm = hadoop.get("encryption.key.hash"), hadoop.get("encryption.algorithm")
    if not key:
        return {}, {}
    place.refuse_plain("encryption keys")
    key = key if isinstance(key, bytes) else str(key)
    return encryption_headers(key, digest, algorithm, name=name)


def _kms(options: Mapping[str, Any], written: Mapping[str, str]) -> str:
    name = str(options.get("kms_key_name", ""))
    if name and written:
        raise OptionError("kms_key_name and an encryption key are given: set only one of them")
    return kms_key_name(name) if name else ""


def _whole(size: int, unit: int) -> int:
    """Return the next whole multiple of ``unit``."""
    return -(-size // unit) * unit


# --- keys of the customer's ------------------------------------------------------------------

_KMS = re.compile(r"projects/[^/\s]+/locations/[^/\s]+/keyRings/[^/\s]+/cryptoKeys/[^/\s]+", re.A)
_KEY_HEADER = "x-goog-encryption-"
_SOURCE_HEADER = "x-goog-copy-source-encryption-"


def kms_key_name(name: str) -> str:
    """Return ``name`` if a key of Cloud KMS can have it.

    Raises ``OptionError``.
    """
    if not _KMS.fullmatch(name):
        raise OptionError(
            f"kms_key_name is {name[:300]!r}: expected "
            "projects/PROJECT/locations/LOCATION/keyRings/RING/cryptoKeys/KEY"
        )
    return name


def encryption_headers(
    key: str | bytes, digest: str = "", algorithm: str = "", *, name: str = "encryption_key"
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the headers with ``key``: for content, and for a copy's source."""
    if algorithm not in ("", "AES256"):
        raise OptionError(f"the encryption algorithm is {algorithm[:100]!r}: expected AES256")
    raw = customer_key(name, key)
    expected = base64.b64encode(sha256(raw).digest()).decode()
    if digest not in ("", expected):
        raise OptionError(f"{name} does not match {name}.hash: correct one of them")
    values = {"algorithm": "AES256", "key": base64.b64encode(raw).decode(), "key-sha256": expected}
    return (
        {_KEY_HEADER + part: value for part, value in values.items()},
        {_SOURCE_HEADER + part: value for part, value in values.items()},
    )
