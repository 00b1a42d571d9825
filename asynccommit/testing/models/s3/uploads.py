"""The uploads of a bucket: those under way, and what is remembered of those that ended."""

from __future__ import annotations

import base64
import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from asynccommit.testing.models.s3.objects import NOTHING, CompletedPart, S3Object, Sent
from asynccommit.testing.models.s3.refusals import refuse


class UploadRules(NamedTuple):
    """What a bucket is like.

    Attributes:
        smallest_part: bytes of every part but the last.
        largest_part: bytes of a part, and of what one request copies.
        most_parts: of one upload.
        page: most entries of a page of any listing.
        sse_kms: objects are encrypted by a key of the customer's: etags are no MD5s.
        remembers: seconds after a completion in which the same one again is answered with yes.
        late_parts: a part that was on its way when its upload was aborted is kept, and has to be
            aborted again.
        conditional_deletes: deletes can have conditions; if not, they are not looked at.
        conditional_writes: likewise what makes an object of data or of parts. S3 looks at them.
        abort_tells: the abort of a completed upload finds none, as on S3; else it says yes.
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
    abort_tells: bool = True


@dataclass(slots=True)
class S3Upload:
    """An upload that is neither completed nor aborted.

    Attributes:
        initiated: seconds since the epoch.
        serial: how many were begun before it.
        algorithm: of its checksums; empty without them.
        parts: by number.
        aborted: it is over, and is here only for the parts that came late.
    """

    key: str
    upload_id: str
    initiated: float
    serial: int
    metadata: Mapping[str, str]
    algorithm: str = ""
    parts: dict[int, Sent] = field(default_factory=dict)
    aborted: bool = False

    def chosen(self, listed: Sequence[CompletedPart], rules: UploadRules) -> list[Sent]:
        """Return the parts that ``listed`` names. Refuses what does not fit."""
        if not 0 < len(listed) <= rules.most_parts:
            raise refuse("MalformedXML")
        numbers = [part.number for part in listed]
        if any(first >= second for first, second in pairwise(numbers)):
            raise refuse("InvalidPartOrder")
        found = [self._part(part) for part in listed]
        if any(len(part.data) < rules.smallest_part for part in found[:-1]):
            raise refuse("EntityTooSmall")
        return found

    def _part(self, listed: CompletedPart) -> Sent:
        sent = self.parts.get(listed.number)
        if sent is None or sent.etag != listed.etag.strip('"'):
            raise refuse("InvalidPart")
        # Inferred: who begins an upload with checksums has to name them at its end.
        if sent.checksum != listed.checksum and (listed.checksum or self.algorithm):
            raise refuse("InvalidPart")
        return sent


class Ended(NamedTuple):
    """What is remembered of an upload that ended."""

    key: str
    serial: int
    algorithm: str
    at: float
    made: S3Object | None = None
    parts: tuple[CompletedPart, ...] = ()


class UploadListing(NamedTuple):
    """One page of uploads; what comes next begins behind the two markers, empty at the end."""

    entries: list[S3Upload]
    key_marker: str = ""
    upload_id_marker: str = ""


class PartListing(NamedTuple):
    """One page of parts; what comes next begins behind ``marker``, 0 at the end."""

    entries: list[Sent]
    marker: int = 0


class UploadTable:
    """All uploads of a bucket, by id.

    Args:
        rules: of the bucket.
    """

    def __init__(self, rules: UploadRules) -> None:
        self.open: dict[str, S3Upload] = {}
        self.ended: dict[str, Ended] = {}
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
        """Return an upload, or what is left of one. Refuses what is not there."""
        upload = self.open.get(upload_id)
        if upload is None or upload.key != key:
            raise refuse("NoSuchUpload")
        return upload

    def end(self, upload: S3Upload, ended: Ended) -> None:
        """Remember that an upload is over."""
        del self.open[upload.upload_id]
        self.ended[upload.upload_id] = ended

    def bring_back(self, key: str, upload_id: str) -> S3Upload:
        """Return what an aborted upload leaves for parts that come late."""
        over = self.ended.get(upload_id)
        if over is None or over.key != key or over.made is not None or not self.rules.late_parts:
            raise refuse("NoSuchUpload")
        upload = S3Upload(key, upload_id, over.at, over.serial, NOTHING, over.algorithm)
        upload.aborted = True
        self.open[upload_id] = upload
        return upload

    def list(self, prefix: str, key_marker: str, upload_id_marker: str, most: int) -> UploadListing:
        """Return one page, by key and, of one key, by the time at which they were begun."""
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
    """Return a token of words."""
    return base64.urlsafe_b64encode(json.dumps(words).encode()).decode()


def decode_marker(token: str, count: int) -> list[str]:
    """Return the words of a token. Refuses what is none of so many words."""
    try:
        words = json.loads(base64.urlsafe_b64decode(token))
        if len(words) != count or not all(isinstance(word, str) for word in words):
            raise ValueError("it has other words")
        return list(words)
    except (ValueError, TypeError):
        raise refuse("InvalidArgument", "The continuation token provided is incorrect") from None
