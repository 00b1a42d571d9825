"""Find out by requests what a server of S3 can do.

Every request is about one object of the caller's own and its uploads. Nothing is left of either.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from asynccommit.errors import (
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    StoreError,
    UnavailableError,
)
from asynccommit.stores.parts import Part

OTHER = "0" * 32
"""An etag that the object never has."""
PROBE = "_probe-"
"""The beginning of the name of that object."""
_CONTENT = b"-"
_TWICE = "two commits of one job could run at once without noticing each other"
_UNSEEN = "a commit could replace another writer's file unseen"
_UNDEAD = (
    "completes an upload after AbortMultipartUpload, so the files of an aborted job could appear"
)
_REFUSED = (ExistsError, PreconditionError)
_UNKNOWN = (OutcomeUnknownError, UnavailableError)
# A "no", or a server that fails inside. All that follows from it is the safe answer.
_NO = (ExistsError, NotFoundError, PreconditionError, RejectedError, *_UNKNOWN)


class Abilities(NamedTuple):
    """The capabilities of a server.

    Attributes:
        puts: refuses a put that must not replace, if an object is there.
        versions: refuses a put that must replace another version than that which is there.
        completes: refuses a completion that must not replace, if an object is there.
        replaces: refuses a completion that must replace another version.
        waits: keeps an upload whose completion it refused.
        repeats: answers a repeated completion with success, or that there is no such upload.
        tells: answers the abort of a completed upload with an error.
        keeps: keeps the object that has the key of an aborted upload.
        ends: never completes an aborted upload.
        clears: lists neither an aborted upload nor its parts.
        crc32: refuses content that does not have the CRC32 in the header.
        crc64nvme: the same of CRC64NVME.
    """

    puts: bool
    versions: bool
    completes: bool
    replaces: bool
    waits: bool
    repeats: bool
    tells: bool
    keeps: bool
    ends: bool
    clears: bool
    crc32: bool
    crc64nvme: bool


class RenameAbilities(NamedTuple):
    """The behaviour of a server that renames.

    Attributes:
        keeps_etag: a renamed object has the etag that it had before.
    """

    keeps_etag: bool


def refuse_lacking(found: Abilities, server: str, path: str) -> None:
    """Raise ``RejectedError`` if no job is safe on a server.

    The error names the request that the server lacks.
    """
    passes = "passes over If-None-Match of {}, so {}"
    lacks = (
        (found.puts, "put", passes.format("PutObject", _TWICE)),
        (found.completes, "complete_upload", passes.format("CompleteMultipartUpload", _UNSEEN)),
        (found.ends, "abort_upload", _UNDEAD),
    )
    for is_there, op, what in lacks:
        if not is_there:
            raise RejectedError(op, path, f"{server} {what}: use another server, or a newer one")


class Trial(Protocol):
    """The requests about one object, each sent as it is.

    The errors are those of ``Store``.
    """

    async def put(
        self,
        data: bytes,
        *,
        new: bool = False,
        etag: str = "",
        checksum: tuple[str, str] = ("", ""),
    ) -> None:
        """Write the object, under a condition or with a checksum in a header."""
        ...

    async def exists(self) -> bool:
        """Return whether the object is there."""
        ...

    async def delete(self) -> None:
        """Delete the object."""
        ...

    async def create(self) -> str:
        """Begin an upload."""
        ...

    async def send(self, upload_id: str, data: bytes) -> Part:
        """Send the first part."""
        ...

    async def complete(
        self, upload_id: str, parts: Sequence[Part], *, new: bool = False, etag: str = ""
    ) -> None:
        """Complete an upload, under a condition."""
        ...

    async def abort(self, upload_id: str) -> None:
        """Abort an upload."""
        ...

    async def show(self, upload_id: str) -> None:
        """Raise ``NotFoundError`` if no listing has the upload or its parts."""
        ...


async def find_abilities(trial: Trial) -> Abilities:
    """Find out what the server can do.

    Raises the error of a request that no answer follows from: the server is to be asked again.
    """
    begun: list[str] = []
    try:
        await trial.put(_CONTENT)
        puts = await _refuses(trial.put(_CONTENT, new=True))
        versions = await _refuses(trial.put(_CONTENT, etag=OTHER))
        crc32 = await _checks(trial, "CRC32", "l92z+A==")
        crc64 = await _checks(trial, "CRC64NVME", "NAtXPz7wmak=")
        completions = await _try_completions(trial, begun)
        aborts = await _try_aborts(trial, begun)
    finally:
        await _clear(trial, begun)
    return Abilities(
        puts=puts, versions=versions, **completions, **aborts, crc32=crc32, crc64nvme=crc64
    )


async def _try_completions(trial: Trial, begun: list[str]) -> dict[str, bool]:
    begun.append(await trial.create())
    upload_id = begun[0]
    parts = [await trial.send(upload_id, _CONTENT)]
    completes = await _refuses(trial.complete(upload_id, parts, new=True))
    over = await _outcome(trial.complete(upload_id, parts, etag=OTHER))
    replaces = isinstance(over, _REFUSED)
    # One that is not refused has completed the upload, so it was there.
    done = over is None or await _is_done(trial.complete(upload_id, parts))
    again = await _outcome(trial.complete(upload_id, parts))
    tells = await _is_missing(trial.abort(upload_id))
    return {
        "completes": completes,
        "replaces": replaces,
        "waits": completes and done,
        "repeats": again is None or isinstance(again, NotFoundError),
        "tells": tells,
    }


async def _try_aborts(trial: Trial, begun: list[str]) -> dict[str, bool]:
    await trial.put(_CONTENT)
    begun.append(await trial.create())
    upload_id = begun[1]
    parts = [await trial.send(upload_id, _CONTENT)]
    with suppress(NotFoundError):  # the request was sent twice on its way
        await trial.abort(upload_id)
    keeps = await trial.exists()
    await trial.delete()
    clears = await _is_missing(trial.show(upload_id))
    outcome = await _outcome(trial.complete(upload_id, parts))
    # What failed may take effect later, though moto's 500 is a no. And a success counts without
    # the object, since the deletion above can be sent twice on its way.
    refused = clears if isinstance(outcome, _UNKNOWN) else outcome is not None
    return {"keeps": keeps, "ends": refused and not await trial.exists(), "clears": clears}


async def _checks(trial: Trial, kind: str, right: str) -> bool:
    """Return whether content is accepted and refused by its checksum."""
    if not await _is_done(trial.put(_CONTENT, checksum=(kind, right))):
        return False
    return not await _is_done(trial.put(_CONTENT * 2, checksum=(kind, right)))


async def _clear(trial: Trial, begun: Sequence[str]) -> None:
    for upload_id in begun:
        with suppress(StoreError):
            await trial.abort(upload_id)
    with suppress(StoreError):
        await trial.delete()


async def _refuses(act: Awaitable[None]) -> bool:
    """Return whether the condition of a request is seen to fail."""
    try:
        await act
    except _REFUSED:
        return True
    except (NotFoundError, RejectedError):
        pass
    return False


async def _is_done(act: Awaitable[None]) -> bool:
    return await _outcome(act) is None


async def _is_missing(act: Awaitable[None]) -> bool:
    return isinstance(await _outcome(act), NotFoundError)


async def _outcome(act: Awaitable[None]) -> StoreError | None:
    try:
        await act
    except _NO as error:
        return error
    return None
