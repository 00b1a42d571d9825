"""The contract of stores with multipart uploads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from asynccommit.stores.base import BulkStore, Info
from asynccommit.stores.parts import Part


class Upload(NamedTuple):
    """An upload that has been begun, and neither completed nor aborted.

    Attributes:
        path: where the file appears when it is completed.
        upload_id: the service's name for it.
        initiated: seconds since the epoch, or 0.0 if unknown.
    """

    path: str
    upload_id: str
    initiated: float = 0.0


@dataclass(frozen=True, slots=True)
class UploadPage:
    """One page of uploads; ``token`` is ``None`` on the last page."""

    entries: tuple[Upload, ...]
    token: str | None = None


@dataclass(frozen=True, slots=True)
class PartPage:
    """One page of the parts of an upload, by number, with their bytes."""

    entries: tuple[tuple[int, Part, int], ...]
    token: str | None = None


class CopyingStore(Protocol):
    """A store that remembers what a file was copied from.

    That is so if ``Multipart.copy_etags`` is false.
    """

    async def copied_from(self, path: str) -> str | None:
        """Return the path that the file ``path`` was copied from, or ``None``.

        A file that was written since is no copy any more. Raises ``NotFoundError``.
        """
        ...


class MultipartStore(BulkStore, Protocol):
    """A store with multipart uploads, invisible until completed.

    ``Traits.multipart`` is what the parts may be. An upload can be completed once, and not after
    it was aborted: whichever comes first ends it, and from then on it is not there.
    """

    async def create_upload(self, path: str, *, token: str | None = None, owner: str = "") -> str:
        """Begin an upload of the file ``path``; return the service's name for it.

        ``token`` is a UUID that marks the file to be: ``head`` returns it if ``Traits.put_tokens``
        is true, and ``completed`` identifies the file by it. ``owner`` names the job and the task
        attempt for people who find the parts, on stores where the caller's side makes that name.
        """
        ...

    async def put_part(self, path: str, upload_id: str, number: int, data: bytes) -> Part:
        """Send the part ``number``, from 1; if sent again, the last one counts.

        Raises ``NotFoundError`` if there is no such upload.
        """
        ...

    async def complete_upload(
        self,
        path: str,
        upload_id: str,
        parts: Sequence[Part],
        *,
        overwrite: bool = True,
        etag: str | None = None,
        token: str | None = None,
    ) -> Info:
        """Make the file ``path`` from ``parts``, atomically, and return its facts.

        ``etag`` is the etag of the file to replace, and then ``overwrite`` is ignored; see
        ``Multipart.matches``. ``token`` is the token of the upload's beginning, if the caller knows
        it: it is not sent, but a caller that must determine the outcome of a request passes it to
        ``completed``.

        Raises ``NotFoundError`` if there is no such upload (any more), ``ExistsError`` if something
        is at ``path`` and ``overwrite`` is false, ``PreconditionError`` if there is nothing to
        replace, or its etag is not ``etag``: the upload still exists then. Raises
        ``PreconditionError`` if ``parts`` differ from what was sent, or are too small.
        """
        ...

    async def completed(
        self, path: str, parts: Sequence[Part], token: str | None = None
    ) -> Info | None:
        """Return the facts about ``path`` if made from ``parts``, or ``None``.

        With a ``token``, only a file with this token counts. Without a token, a file with the same
        parts counts: another upload of the same bytes looks the same.

        Raises ``OutcomeUnknownError`` if the origin of an existing file is unknown.
        """
        ...

    async def copy_if(
        self, source: str, dest: str, etag: str, *, replaces: str | None = None
    ) -> None:
        """Copy the file ``source`` while it has this etag; replace ``dest``.

        ``replaces`` is the etag that the file at ``dest`` must have. If the service may ignore
        these conditions, the store checks them before the copy.

        Raises ``NotFoundError`` if there is no source, ``PreconditionError`` for another etag than
        ``etag`` or ``replaces``, or if there is nothing to replace, ``RejectedError`` for a file
        that one request cannot copy.
        """
        ...

    async def abort_upload(self, path: str, upload_id: str) -> None:
        """Delete an upload and its parts.

        It does nothing where parts cannot be deleted (``Multipart.aborts``). Raises
        ``NotFoundError`` if there is no such upload (any more).
        """
        ...

    async def learn(self, path: str) -> None:
        """Find out what the service can do, unless ``Traits.conditions_proven``.

        The answers change ``traits``. ``path`` is a directory of the caller's own: a file in it is
        written and deleted again, and so are uploads of that file. Without the permission nothing
        is learned.

        Raises ``RejectedError`` if the service lacks what every commit needs.
        """
        ...

    async def put_marker(self, path: str, metadata: Mapping[str, str]) -> Info:
        """Write the empty file ``path`` with metadata; replace an existing file."""
        ...

    async def list_uploads(self, path: str, token: str | None = None) -> UploadPage:
        """Return one page of the uploads of files below ``path``, maybe empty."""
        ...

    async def list_parts(self, path: str, upload_id: str, token: str | None = None) -> PartPage:
        """Return one page of the parts that were sent. Raises ``NotFoundError``."""
        ...
