"""Model a directory bucket of S3 Express One Zone: renames, and sessions.

It differs from a general purpose bucket as these pages say:

* https://docs.aws.amazon.com/AmazonS3/latest/API/API_RenameObject.html: conditions on source and
  destination, tokens of clients, keys that end in a slash.
* https://docs.aws.amazon.com/AmazonS3/latest/userguide/directory-buckets-objects-rename.html: what
  a renamed object keeps.
* https://docs.aws.amazon.com/AmazonS3/latest/API/API_ObjectIdentifier.html: etags are random and
  unique to the object.
* https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html: no order, prefixes and the
  delimiter, the prefixes of uploads in progress.
* https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompletedPart.html: part numbers.

What no page says is a switch of ``DirectoryRules``, or a comment calls it inferred.
"""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from asynccommit.testing.models.s3.listing import S3Page
from asynccommit.testing.models.s3.model import ANY, S3Bucket
from asynccommit.testing.models.s3.objects import CompletedPart, S3Object, SentPart, check_key
from asynccommit.testing.models.s3.objects import composite_checksum as composite
from asynccommit.testing.models.s3.refusals import refuse
from asynccommit.testing.models.s3.uploads import (
    S3Upload,
    UploadListing,
    UploadRules,
    decode_marker,
    encode_marker,
)

_TOKEN = re.compile(r"[!-~]{1,64}", re.ASCII)


class DirectoryRules(NamedTuple):
    """Points that differ between buckets, or are not documented.

    Attributes:
        keeps_etag: a renamed object keeps its etag; otherwise it gets another one.
        remembers: seconds for which the token of a rename is remembered; 0 for not at all.
        missing: code of the refusal if a rename names the etag of a source that is not there.
        session: seconds after which a session ends.
        renames: the service knows renames; otherwise the request is one it has never heard of.
    """

    keeps_etag: bool = True
    remembers: float = 60.0
    missing: str = "NoSuchKey"
    session: float = 300.0
    renames: bool = True


class BucketSession(NamedTuple):
    """The credentials of a session, scoped to one bucket."""

    access: str
    secret: str
    token: str
    expires: float
    writes: bool = True


class RenameRequest(NamedTuple):
    """The parameters of a rename; etags without quotes, or ``*``.

    Attributes:
        source: the key of the object.
        key: its new key.
        absent: nothing may be at the new key.
        matches: etag that the object there must have.
        source_matches: etag that the source must have.
        source_differs: etag that the source must not have.
    """

    source: str
    key: str
    absent: bool = False
    matches: str = ""
    source_matches: str = ""
    source_differs: str = ""


class DirectoryBucket(S3Bucket):
    """One directory bucket.

    Args:
        name: ends in ``--ZONE--x-s3``.
        now: the server's clock, seconds since the epoch.
        new_id: returns unique ids.
        rules: rules of uploads and conditions.
        switches: may be replaced at any time.

    ``sessions`` holds the sessions that were created, by token.
    """

    def __init__(
        self,
        name: str,
        *,
        now: Callable[[], float],
        new_id: Callable[[], str],
        rules: UploadRules | None = None,
        switches: DirectoryRules | None = None,
    ) -> None:
        super().__init__(name, now=now, new_id=new_id, rules=rules)
        self.switches = switches or DirectoryRules()
        self.sessions: dict[str, BucketSession] = {}
        self._tokens: dict[str, tuple[float, RenameRequest]] = {}

    def copy(self) -> DirectoryBucket:
        """Return a bucket with the same content, clock and ids."""
        made = DirectoryBucket(self.name, now=self.now, new_id=self.new_id, switches=self.switches)
        made.objects.update(self.objects)
        made.uploads = self.uploads.copy()
        made.sessions = dict(self.sessions)
        made._tokens = dict(self._tokens)
        return made

    # --- sessions ------------------------------------------------------------------------------

    def create_session(self, *, writes: bool = True) -> BucketSession:
        """Create the credentials of a session.

        Source: https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateSession.html
        """
        expires = self._second() + self.switches.session
        access, secret, token = self._random(), self._random(), self._random()
        made = BucketSession(access, secret, token, expires, writes)
        self.sessions[made.token] = made
        return made

    # --- renames -------------------------------------------------------------------------------

    def rename(self, asked: RenameRequest, token: str = "") -> None:
        """RenameRequest an object; see ``RenameRequest``.

        With the token of a request that was successful it does nothing.
        """
        if not self.switches.renames:
            raise refuse("NotImplemented")
        for key in (asked.source, asked.key):
            check_key(key)
            if key.endswith("/"):
                raise refuse("InvalidRequest", "Keys that end in a delimiter are not renamed.")
        if token and self._is_repeated(asked, token):
            return
        found = self.objects.get(asked.source)
        if found is None:
            raise refuse(self.switches.missing if asked.source_matches else "NoSuchKey")
        self._check_source(found, asked)
        if asked.source == asked.key:  # Inferred.
            raise refuse("InvalidRequest", "The source and the destination are the same.")
        self._check(asked.key, "*" if asked.absent else "", asked.matches)
        etag = found.etag if self.switches.keeps_etag else self._random()
        if asked.key not in self.objects:
            self._names.added(asked.key)
        self.objects[asked.key] = found._replace(key=asked.key, etag=etag)
        self.delete(asked.source)
        if token and self.switches.remembers:
            self._tokens[token] = self.now(), asked

    def _is_repeated(self, asked: RenameRequest, token: str) -> bool:
        if not _TOKEN.fullmatch(token):
            raise refuse("InvalidArgument", "The client token is not 1 to 64 ASCII characters.")
        at, before = self._tokens.get(token, (0.0, asked))
        if token not in self._tokens or self.now() - at > self.switches.remembers:
            return False
        if before != asked:
            raise refuse("IdempotentParameterMismatch")
        return True

    def _check_source(self, found: S3Object, asked: RenameRequest) -> None:
        wanted, unwanted = asked.source_matches, asked.source_differs
        if wanted not in ("", ANY, found.etag) or unwanted in (ANY, found.etag):
            raise refuse("PreconditionFailed")

    # --- listings ------------------------------------------------------------------------------

    def list(
        self,
        prefix: str = "",
        *,
        delimiter: str = "",
        start_after: str = "",
        token: str = "",
        most: int | None = None,
    ) -> S3Page:
        """Return one page of the keys with ``prefix``, in no order.

        With a delimiter, the directories of open uploads are shown as well.
        """
        _check_prefix(prefix, delimiter)
        if start_after:
            raise refuse("InvalidArgument", "StartAfter is not supported for directory buckets.")
        after, room = (decode_marker(token, 1)[0] if token else ""), self._room(most)
        shown = dict(self._shown(prefix, delimiter))
        order = sorted((place, name) for name in shown if (place := _place_of(name)) > after)
        page = [name for _, name in order[:room]]
        objects = [found for name in page if (found := shown[name]) is not None]
        more = encode_marker(order[room - 1][0]) if len(order) > room else ""
        return S3Page(objects, [name for name in page if shown[name] is None], more)

    def _shown(self, prefix: str, delimiter: str) -> Iterator[tuple[str, S3Object | None]]:
        """Yield what a listing shows: objects by key, and common prefixes."""
        for key in self._names.below(prefix):
            directory = _below(key, prefix, delimiter)
            yield (key, self.objects[key]) if directory is None else (directory, None)
        for upload in self.uploads.open.values():
            if delimiter and upload.key.startswith(prefix):
                directory = _below(upload.key, prefix, delimiter)
                if directory is not None:
                    yield directory, None

    def list_uploads(
        self,
        prefix: str = "",
        *,
        key_marker: str = "",
        upload_id_marker: str = "",
        most: int | None = None,
    ) -> UploadListing:
        """Return one page of the uploads of keys with ``prefix``."""
        _check_prefix(prefix, "")
        return super().list_uploads(prefix, key_marker=key_marker, most=most)

    # --- uploads -------------------------------------------------------------------------------

    def complete(
        self,
        key: str,
        upload_id: str,
        parts: Sequence[CompletedPart],
        *,
        if_none_match: str = "",
        if_match: str = "",
    ) -> S3Object:
        """See ``S3Bucket.complete``; the parts are numbered from 1 without gaps."""
        if [part.number for part in parts] != list(range(1, len(parts) + 1)):
            raise refuse("InvalidPartOrder", "Part numbers must be consecutive and begin at 1.")
        return super().complete(
            key, upload_id, parts, if_none_match=if_none_match, if_match=if_match
        )

    def _join(self, upload: S3Upload, chosen: Sequence[SentPart]) -> S3Object:
        data, kind = b"".join(part.data for part in chosen), upload.algorithm
        facts: tuple[str, float, Mapping[str, str]]
        facts = self._random(), upload.initiated, upload.metadata
        return self._place(upload.key, data, *facts, kind, composite(kind, chosen))

    def _etag(self, data: bytes) -> str:
        return self._random()

    def _random(self) -> str:
        return hashlib.sha256(self.new_id().encode()).hexdigest()[:32]


class DirectoryService:
    """Directory buckets by name, with a common clock.

    Args:
        now: see ``S3Bucket``.
        new_id: see ``S3Bucket``.
    """

    def __init__(self, *, now: Callable[[], float], new_id: Callable[[], str]) -> None:
        self.now = now
        self.new_id = new_id
        self.buckets: dict[str, DirectoryBucket] = {}

    def __repr__(self) -> str:
        return f"DirectoryService({', '.join(self.buckets)})"

    def create_bucket(
        self, name: str, switches: DirectoryRules | None = None, rules: UploadRules | None = None
    ) -> DirectoryBucket:
        """Create a bucket, and return it."""
        made = self.buckets[name] = DirectoryBucket(
            name, now=self.now, new_id=self.new_id, rules=rules, switches=switches
        )
        return made

    def bucket(self, name: str) -> DirectoryBucket:
        """Return a bucket."""
        if name not in self.buckets:
            raise refuse("NoSuchBucket")
        return self.buckets[name]

    def copy(self) -> DirectoryService:
        """Return a service with the same content, clock and ids."""
        made = copy.copy(self)
        made.buckets = {name: bucket.copy() for name, bucket in self.buckets.items()}
        return made


def _check_prefix(prefix: str, delimiter: str) -> None:
    """Refuse what directory buckets do not list; the code is inferred."""
    if prefix and not prefix.endswith("/"):
        raise refuse("InvalidArgument", "A prefix must end in the delimiter.")
    if delimiter not in ("", "/"):
        raise refuse("InvalidArgument", "The only delimiter is a slash.")


def _below(key: str, prefix: str, delimiter: str) -> str | None:
    """Return the common prefix that a key is shown as; ``None`` if as itself."""
    cut = key.find(delimiter, len(prefix)) if delimiter else -1
    # A key that ends in the delimiter and is the listed prefix itself has none after it.
    return None if cut < 0 else key[: cut + 1]


def _place_of(name: str) -> str:
    """Return where a name comes in listings, which is not by its text."""
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:24]
