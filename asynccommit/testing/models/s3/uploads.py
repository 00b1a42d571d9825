"""Manage the uploads of a bucket: open ones, and records of ended ones."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from asynccommit.testing.models.s3.objects import NOTHING, CompletedPart, S3Object, SentPart
from asynccommit.testing.models.s3.refusals import refuse


class UploadRules(NamedTuple):
    """The rules of a bucket.

    Attributes:
        smallest_part: minimum bytes of every part but the last.
        largest_part: maximum bytes of a part, and of one copy request.
        most_parts: maximum number of parts of one upload.
        page: maximum number of entries on a page of any listing.
        sse_kms: objects are encrypted by a customer's KMS key: etags are not MD5s.
        remembers: seconds after a completion in which the same request succeeds again.
        late_parts: a part in flight when its upload was aborted is kept, and must be aborted again.
        conditional_deletes: deletes support conditions; otherwise conditions are ignored.
        conditional_writes: likewise for puts and completions. S3 supports conditions.
        conditional_completions: likewise for completions alone.
        matches: likewise for what must replace one etag.
        abort_tells: the abort of a completed upload reports that there is none, as on S3; otherwise
            it succeeds.
        abort_keeps: an abort keeps the object of its key, as on S3.
        abort_ends: an abort is carried out, as on S3; otherwise it succeeds and changes nothing.
    """

    smallest_part: int = 5 << 20
    largest_part: int = 5 << 30
    most_parts: int = 10_000
    page: int = 1000
    sse_kms: bool = False
    remembers: float = 60.0
    late_parts: bool = True
    conditional_deletes: bool = True
    conditional_writes: bool = True
    conditional_completions: bool = True
    matches: bool = True
    abort_tells: bool = True
    abort_keeps: bool = True
    abort_ends: bool = True


@dataclass(slots=True)
class S3Upload:
    """An upload that is neither completed nor aborted.

    Attributes:
        initiated: seconds since the epoch.
        serial: number of uploads created before it.
        algorithm: checksum algorithm; empty without checksums.
        parts: parts by number.
        aborted: it has ended, and is kept only for late parts.
    """

    key: str
    upload_id: str
    initiated: float
    serial: int
    metadata: Mapping[str, str]
    algorithm: str = ""
    parts: dict[int, SentPart] = field(default_factory=dict)
    aborted: bool = False

    def chosen(self, listed: Sequence[CompletedPart], rules: UploadRules) -> list[SentPart]:
        """Return the parts that ``listed`` names. Rejects a mismatch."""
        if not 0 < len(listed) <= rules.most_parts:
            raise refuse("MalformedXML")
        numbers = [part.number for part in listed]
        if any(first >= second for first, second in pairwise(numbers)):
            raise refuse("InvalidPartOrder")
        found = [self._part(part) for part in listed]
        if any(len(part.data) < rules.smallest_part for part in found[:-1]):
            raise refuse("EntityTooSmall")
        return found

    def _part(self, listed: CompletedPart) -> SentPart:
        sent = self.parts.get(listed.number)
        if sent is None or sent.etag != listed.etag.strip('"'):
            raise refuse("InvalidPart")
        # Inferred: an upload created with checksums must be completed with them.
        if sent.checksum != listed.checksum and (listed.checksum or self.algorithm):
            raise refuse("InvalidPart")
        return sent


class EndedUpload(NamedTuple):
    """The record of an ended upload."""

    key: str
    serial: int
    algorithm: str
    at: float
    made: S3Object | None = None
    parts: tuple[CompletedPart, ...] = ()


class UploadListing(NamedTuple):
    """One page of uploads, and the markers of the next or ``""``."""

    entries: list[S3Upload]
    key_marker: str = ""
    upload_id_marker: str = ""


class PartListing(NamedTuple):
    """One page of parts; the next begins after ``marker``, 0 at the end."""

    entries: list[SentPart]
    marker: int = 0


class UploadTable:
    """All uploads of a bucket, by id.

    Args:
        rules: rules of the bucket.
    """

    def __init__(self, rules: UploadRules) -> None:
        self.open: dict[str, S3Upload] = {}
        self.ended: dict[str, EndedUpload] = {}
        self.rules = rules
        self._serial = 0

    def copy(self) -> UploadTable:
        """Return one with the same content."""
        made = copy.copy(self)
        made.open = {name: copy.copy(upload) for name, upload in self.open.items()}
        for upload in made.open.values():
            upload.parts = dict(upload.parts)
        made.ended = dict(self.ended)
        return made

    def begin(
        self, key: str, upload_id: str, at: float, metadata: Mapping[str, str], algorithm: str
    ) -> S3Upload:
        """Add an upload."""
        self._serial += 1
        upload = S3Upload(key, upload_id, at, self._serial, dict(metadata), algorithm)
        self.open[upload_id] = upload
        return upload

    def find(self, key: str, upload_id: str) -> S3Upload:
        """Return an upload, or the remains of one. Rejected if it does not exist."""
        upload = self.open.get(upload_id)
        if upload is None or upload.key != key:
            raise refuse("NoSuchUpload")
        return upload

    def end(self, upload: S3Upload, ended: EndedUpload) -> None:
        """Record that an upload has ended."""
        del self.open[upload.upload_id]
        self.ended[upload.upload_id] = ended

    def bring_back(self, key: str, upload_id: str) -> S3Upload:
        """Return the remains of an aborted upload, for late parts."""
        over = self.ended.get(upload_id)
        if over is None or over.key != key or over.made is not None or not self.rules.late_parts:
            raise refuse("NoSuchUpload")
        upload = S3Upload(key, upload_id, over.at, over.serial, NOTHING, over.algorithm)
        upload.aborted = True
        self.open[upload_id] = upload
        return upload

    def list(self, prefix: str, key_marker: str, upload_id_marker: str, most: int) -> UploadListing:
        """Return one page, ordered by key, then by creation time."""
        found = sorted(
            (upload for upload in self.open.values() if upload.key.startswith(prefix)),
            key=lambda upload: (upload.key, upload.serial),
        )
        if key_marker:
            place = (key_marker, self._serial_of(upload_id_marker))
            found = [upload for upload in found if (upload.key, upload.serial) > place]
        if len(found) <= most:
            return UploadListing(found)
        last = found[most - 1]
        return UploadListing(found[:most], last.key, last.upload_id)

    def list_parts(self, key: str, upload_id: str, marker: int, most: int) -> PartListing:
        """Return one page of the parts of an upload, by number."""
        parts = self.find(key, upload_id).parts
        numbers = sorted(number for number in parts if number > marker)
        more = numbers[most - 1] if len(numbers) > most else 0
        return PartListing([parts[number] for number in numbers[:most]], more)

    def _serial_of(self, upload_id: str) -> int:
        if not upload_id:
            return self._serial
        upload = self.open.get(upload_id) or self.ended.get(upload_id)
        if upload is None:
            raise refuse("InvalidArgument", "Invalid uploadId marker")
        return upload.serial


def encode_marker(*words: str) -> str:
    """Encode words as a token."""
    return base64.urlsafe_b64encode(json.dumps(words).encode()).decode()


def decode_marker(token: str, count: int) -> list[str]:
    """Return the words of a token; reject one without exactly ``count`` words."""
    try:
        words = json.loads(base64.urlsafe_b64decode(token))
        if len(words) != count or not all(isinstance(word, str) for word in words):
            raise ValueError("it has other words")
        return list(words)
    except (ValueError, TypeError):
        raise refuse("InvalidArgument", "The continuation token provided is incorrect") from None
