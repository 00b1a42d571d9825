"""Model a bucket of S3 without its wire format.

It is synchronous, in memory, and uses neither HTTP nor wall time; every rejected request raises
``Refusal``. Each change is atomic and visible to every later request. Keys are decoded, etags are
without quotes, and a condition on an etag accepts both forms.

Comments mark behaviour that is only *inferred*; the rest is documented by Amazon.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from asynccommit.testing.models.adls.refusals import Refusal
from asynccommit.testing.models.gcs.names import SortedNames
from asynccommit.testing.models.s3.listing import S3Page, list_page
from asynccommit.testing.models.s3.objects import (
    ALGORITHMS,
    NOTHING,
    CompletedPart,
    S3Object,
    SentPart,
    check_key,
    checksum_of,
    composite_checksum,
    md5,
)
from asynccommit.testing.models.s3.refusals import refuse
from asynccommit.testing.models.s3.uploads import (
    EndedUpload,
    PartListing,
    S3Upload,
    UploadListing,
    UploadRules,
    UploadTable,
)

__all__ = [
    "ALGORITHMS",
    "CompletedPart",
    "PartListing",
    "Refusal",
    "S3Bucket",
    "S3Object",
    "S3Page",
    "S3Service",
    "SentPart",
    "UploadListing",
    "UploadRules",
    "refuse",
]

ABSENT = ANY = "*"
"""The value of ``if_none_match`` if given, and the ``if_match`` that any object fulfils."""

_MOST_DELETES = 1000
_HIGHEST_PART = 10_000  # maximum part number, whatever the rules say


class S3Bucket:
    """One bucket.

    Args:
        name: name of the bucket.
        now: the server's clock, seconds since the epoch.
        new_id: returns unique ids.
        rules: rules of the bucket; may be replaced at any time.

    ``objects`` holds the present objects by key; it must not be changed from outside.
    """

    def __init__(
        self,
        name: str,
        *,
        now: Callable[[], float],
        new_id: Callable[[], str],
        rules: UploadRules | None = None,
    ) -> None:
        self.name = name
        self.now = now
        self.new_id = new_id
        self.objects: dict[str, S3Object] = {}
        self.uploads = UploadTable(rules or UploadRules())
        self._names = SortedNames(self.objects)

    def __repr__(self) -> str:
        return f"Bucket({self.name}: {len(self.objects)} objects, {len(self.uploads.open)} uploads)"

    @property
    def rules(self) -> UploadRules:
        """The rules of the bucket."""
        return self.uploads.rules

    @rules.setter
    def rules(self, rules: UploadRules) -> None:
        self.uploads.rules = rules

    def copy(self) -> S3Bucket:
        """Return a bucket with the same content, clock and ids."""
        made = type(self)(self.name, now=self.now, new_id=self.new_id)
        made.objects.update(self.objects)
        made.uploads = self.uploads.copy()
        return made

    # --- objects -------------------------------------------------------------------------------

    def head(self, key: str) -> S3Object:
        """Return the object at ``key``."""
        check_key(key)
        found = self.objects.get(key)
        if found is None:
            raise refuse("NoSuchKey")
        return found

    def put(
        self,
        key: str,
        data: bytes,
        *,
        metadata: Mapping[str, str] = NOTHING,
        algorithm: str = "",
        if_none_match: str = "",
        if_match: str = "",
    ) -> S3Object:
        """Create an object, replacing the present one."""
        check_key(key)
        self._need(key, if_none_match, if_match)
        checksum = checksum_of(algorithm, data)
        return self._place(
            key, data, self._etag(data), self._second(), metadata, algorithm, checksum
        )

    def delete(self, key: str, *, if_match: str = "") -> None:
        """Delete an object; without a condition, a missing one is not an error."""
        check_key(key)
        if if_match and self.rules.conditional_deletes:
            # Inferred: a condition on a missing object fails like that of a put.
            self._check(key, "", if_match)
        if self.objects.pop(key, None) is not None:
            self._names.removed()

    def delete_many(self, keys: Sequence[tuple[str, str]]) -> list[Refusal | None]:
        """Delete up to 1000 objects, each with its etag as condition, or none.

        Returns the error of each, ``None`` for a deleted one.
        """
        if not 0 < len(keys) <= _MOST_DELETES:
            raise refuse("MalformedXML")
        return [self._deleted(key, etag) for key, etag in keys]

    def copy_object(
        self,
        source: str,
        key: str,
        *,
        metadata: Mapping[str, str] | None = None,
        if_none_match: str = "",
        if_match: str = "",
        source_if_match: str = "",
    ) -> S3Object:
        """Create an object with the content of another one.

        Its metadata are those of the source unless others are given. It counts as made by one
        ``put``, whatever parts the source was made of.
        """
        check_key(key)
        found = self.head(source)
        if source_if_match and not _matches(found, source_if_match):
            raise refuse("PreconditionFailed")
        if found.size > self.rules.largest_part:
            raise refuse("InvalidRequest", "The specified copy source is larger than allowed.")
        if source == key and metadata is None:
            raise refuse("InvalidRequest", "This copy request is illegal: it changes nothing.")
        self._need(key, if_none_match, if_match)
        kept = found.metadata if metadata is None else metadata
        checksum = checksum_of(found.algorithm, found.data)
        place = self._etag(found.data), self._second()
        return self._place(key, found.data, *place, kept, found.algorithm, checksum)

    def list(
        self,
        prefix: str = "",
        *,
        delimiter: str = "",
        start_after: str = "",
        token: str = "",
        most: int | None = None,
    ) -> S3Page:
        """Return one page of the keys with ``prefix``."""
        room = self._room(most)
        return list_page(self.objects, self._names, prefix, delimiter, start_after, token, room)

    # --- uploads -------------------------------------------------------------------------------

    def create_upload(
        self, key: str, *, metadata: Mapping[str, str] = NOTHING, algorithm: str = ""
    ) -> str:
        """Create an upload, and return its id."""
        check_key(key)
        if algorithm and algorithm not in ALGORITHMS:
            raise refuse("InvalidRequest", "Checksum algorithm provided is unsupported.")
        upload_id = self.new_id()
        self.uploads.begin(key, upload_id, self._second(), metadata, algorithm)
        return upload_id

    def upload_part(
        self, key: str, upload_id: str, number: int, data: bytes, *, begun: bool = False
    ) -> SentPart:
        """Store a part, replacing one of the same number.

        ``begun`` means that it was in flight when the upload was aborted.
        """
        if not 1 <= number <= _HIGHEST_PART:
            raise refuse("InvalidArgument", "Part number must be an integer from 1 to 10000")
        if len(data) > self.rules.largest_part:
            raise refuse("EntityTooLarge")
        upload = self.uploads.open.get(upload_id)
        if upload is None and begun:
            upload = self.uploads.bring_back(key, upload_id)
        elif upload is None or upload.key != key or (upload.aborted and not begun):
            raise refuse("NoSuchUpload")
        checksum = checksum_of(upload.algorithm, data)
        sent = SentPart(number, data, self._etag(data), self._second(), upload.algorithm, checksum)
        upload.parts[number] = sent
        return sent

    def complete(
        self,
        key: str,
        upload_id: str,
        parts: Sequence[CompletedPart],
        *,
        if_none_match: str = "",
        if_match: str = "",
    ) -> S3Object:
        """Create an object from the parts of an upload, and end the upload.

        For some time the same request again gets the same response, and does nothing.
        """
        over = self.uploads.ended.get(upload_id)
        absent = if_none_match if self.rules.conditional_completions else ""
        if over is not None and upload_id not in self.uploads.open:
            # Inferred: conditions are checked before the request is recognized as a repetition.
            self._need(key, absent, if_match)
            return self._repeated(over, key, parts)
        upload = self.uploads.find(key, upload_id)
        if upload.aborted:
            raise refuse("NoSuchUpload")
        chosen = upload.chosen(parts, self.rules)
        self._need(key, absent, if_match)
        made = self._join(upload, chosen)
        ended = EndedUpload(key, upload.serial, upload.algorithm, self.now(), made, tuple(parts))
        self.uploads.end(upload, ended)
        return made

    def is_open(self, key: str, upload_id: str) -> bool:
        """Return whether an upload is open."""
        upload = self.uploads.open.get(upload_id)
        return upload is not None and upload.key == key and not upload.aborted

    def abort(self, key: str, upload_id: str) -> None:
        """End an upload and discard its parts."""
        over = self.uploads.ended.get(upload_id)
        if not self.rules.abort_tells and over is not None and over.made is not None:
            return
        upload = self.uploads.find(key, upload_id)
        if not self.rules.abort_keeps:
            self.delete(key)
        if not self.rules.abort_ends:
            return
        ended = EndedUpload(key, upload.serial, upload.algorithm, upload.initiated)
        self.uploads.end(upload, ended)

    def list_uploads(
        self,
        prefix: str = "",
        *,
        key_marker: str = "",
        upload_id_marker: str = "",
        most: int | None = None,
    ) -> UploadListing:
        """Return one page of the uploads of keys with ``prefix``."""
        return self.uploads.list(prefix, key_marker, upload_id_marker, self._room(most))

    def list_parts(
        self, key: str, upload_id: str, *, marker: int = 0, most: int | None = None
    ) -> PartListing:
        """Return one page of the parts of an upload with numbers above ``marker``."""
        return self.uploads.list_parts(key, upload_id, marker, self._room(most))

    # --- parts ---------------------------------------------------------------------------------

    def _room(self, most: int | None) -> int:
        return self.rules.page if most is None else max(1, min(most, self.rules.page))

    def _second(self) -> float:
        return float(math.floor(self.now()))

    def _etag(self, data: bytes) -> str:
        return md5(self.new_id().encode() if self.rules.sse_kms else data).hex()

    def _need(self, key: str, if_none_match: str, if_match: str) -> None:
        if self.rules.conditional_writes:
            self._check(key, if_none_match, if_match if self.rules.matches else "")

    def _check(self, key: str, if_none_match: str, if_match: str) -> None:
        found = self.objects.get(key)
        if if_none_match and found is not None:
            raise refuse("PreconditionFailed")
        if if_match and found is None:
            raise refuse("NoSuchKey")
        if if_match and found is not None and not _matches(found, if_match):
            raise refuse("PreconditionFailed")

    def _place(
        self,
        key: str,
        data: bytes,
        etag: str,
        modified: float,
        metadata: Mapping[str, str],
        algorithm: str,
        checksum: str,
    ) -> S3Object:
        if key not in self.objects:
            self._names.added(key)
        kept, encrypted = dict(metadata), self.rules.sse_kms
        made = S3Object(key, data, etag, modified, kept, algorithm, checksum, encrypted)
        self.objects[key] = made
        return made

    def _join(self, upload: S3Upload, chosen: Sequence[SentPart]) -> S3Object:
        each = b"".join(bytes.fromhex(part.etag) for part in chosen)
        data = b"".join(part.data for part in chosen)
        algorithm = upload.algorithm
        return self._place(
            upload.key,
            data,
            f"{self._etag(each)}-{len(chosen)}",
            upload.initiated,
            upload.metadata,
            algorithm,
            composite_checksum(algorithm, chosen),
        )

    def _repeated(self, over: EndedUpload, key: str, parts: Sequence[CompletedPart]) -> S3Object:
        same = over.made is not None and over.key == key and over.parts == tuple(parts)
        if over.made is None or not same or self.now() - over.at > self.rules.remembers:
            raise refuse("NoSuchUpload")
        return over.made

    def _deleted(self, key: str, etag: str) -> Refusal | None:
        try:
            self.delete(key, if_match=etag)
        except Refusal as no:
            return no
        return None


class S3Service:
    """Buckets by name, with a common clock.

    Args:
        now: see ``S3Bucket``.
        new_id: see ``S3Bucket``.
    """

    def __init__(self, *, now: Callable[[], float], new_id: Callable[[], str]) -> None:
        self.now = now
        self.new_id = new_id
        self.buckets: dict[str, S3Bucket] = {}

    def __repr__(self) -> str:
        return f"Service({', '.join(self.buckets)})"

    def create_bucket(self, name: str, rules: UploadRules | None = None) -> S3Bucket:
        """Create a bucket, and return it."""
        made = self.buckets[name] = S3Bucket(name, now=self.now, new_id=self.new_id, rules=rules)
        return made

    def bucket(self, name: str) -> S3Bucket:
        """Return a bucket."""
        if name not in self.buckets:
            raise refuse("NoSuchBucket")
        return self.buckets[name]


def _matches(found: S3Object, condition: str) -> bool:
    return condition == ANY or found.etag == condition.strip('"')
