"""Renames on Google Cloud Storage: moves, copies, and folders.

An object is moved by one atomic request. If a server lacks that request, the object is copied and
then deleted, each by its generation. A caller that is interrupted in between sends the rename
again, which finds the copy and deletes the source.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from asynccommit.errors import (
    DeniedError,
    ExistsError,
    NotFoundError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    StoreError,
    ThrottledError,
    UnavailableError,
    UnsupportedError,
)
from asynccommit.stores.base import Info
from asynccommit.stores.gcs.client import GcsClient
from asynccommit.stores.gcs.errors import GcsRequest, explain, says_no_bucket
from asynccommit.stores.gcs.objects import GcsObjects
from asynccommit.stores.gcs.wire import PLAIN, generation_of, json_of, mark_of
from asynccommit.stores.http.base import Response

_MOVED = "fields=generation"
_MOVED_NEW = f"{_MOVED}&ifGenerationMatch=0"
_OPERATION = f"fields=name,done,error{PLAIN}"
_PASSING = (OutcomeUnknownError, ThrottledError, UnavailableError)
_NO_VERB = (405, 501)

# Codes of google.rpc.Code in an operation that failed; a folder is then where it was.
_CODES: Mapping[int, type[StoreError]] = {
    5: NotFoundError,
    6: ExistsError,
    7: DeniedError,
    8: ThrottledError,
    9: PreconditionError,
    10: UnavailableError,
    13: UnavailableError,
    14: UnavailableError,
}


class Moves:
    """Moves objects and folders.

    Args:
        client: what sends the requests.
        files: of the same bucket.
        without: called once it is known that the server cannot move objects.
        sleep: waits between two looks at a long-running operation.
        first: seconds of the first wait; each is half as long again as the one before.
        most: seconds of a wait at most.
        patience: seconds after which the outcome of an operation is given up as unknown.
    """

    def __init__(
        self,
        client: GcsClient,
        files: GcsObjects,
        without: Callable[[], None],
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        first: float = 0.05,
        most: float = 5.0,
        patience: float = 600.0,
    ) -> None:
        self._client = client
        self._files = files
        self._without = without
        self._sleep = sleep
        self._first = first
        self._most = most
        self._patience = patience
        # Whether the server can move objects; None before it has been tried.
        self._can = None if client.settings.move else False
        self._keys = dict(client.settings.write_headers)

    async def rename(self, request: GcsRequest, etag: str | None) -> None:
        """Move the object or folder at ``request.path`` to ``request.dest``."""
        client, path, dest = self._client, request.path, request.dest
        source, target = client.encode(request, path), client.encode(request, dest)
        if source == target:
            client.refuse(request, ValueError("source and destination are the same"))
        if etag is not None:
            try:
                request = request._replace(generation=generation_of(etag))
            except ValueError as error:
                client.refuse(request, error)
        if self._can is False:
            await self._in_two_steps(request, source, target)
            return
        query = _MOVED_NEW if request.new else _MOVED
        if request.generation:
            query += f"&ifSourceGenerationMatch={request.generation}"
        url = f"{client.objects}{source}/moveTo/o/{target}"
        answer = await client.ask(request, "POST", url, query, dict(self._keys))
        # What the answer says of the new object is not needed, only that it is one.
        if answer.status == 200 and b'"generation"' in answer.body:
            self._can = True
        elif await self._is_unknown(request, answer):
            await self._in_two_steps(request, source, target)
        else:
            await self._refused(request, answer)

    async def _is_unknown(self, request: GcsRequest, answer: Response) -> bool:
        """Return whether the server lacks the move request."""
        status, (reason, message) = answer.status, explain(answer)
        # Whether objects that a key of the caller's encrypts can be moved is written nowhere.
        can = self._can and not (self._keys and status == 400)
        if can or status not in (400, 404, *_NO_VERB):
            return False
        if status == 404:
            if "o such object" in message or says_no_bucket(answer):
                return False
            return await self._files.find(request.look, request.path) is not None
        return status in _NO_VERB or (bool(reason) and "equester pays" not in message)

    async def _refused(self, request: GcsRequest, answer: Response) -> None:
        """Raise the error for an object that was not moved; it may be a folder."""
        if answer.status == 200:
            raise self._client.unread(
                request, ValueError("the answer does not describe the moved object")
            )
        error = self._client.error(request, answer)
        if answer.status == 404 and not (self._can or says_no_bucket(answer)):
            # Whatever that page is: the metadata have been asked, and there is no such object.
            error = NotFoundError(request.op, request.path, "there is no such object")
        if isinstance(error, NotFoundError) and not request.generation:
            await self._rename_directory(request, error)
            return
        if answer.status == 412:
            error = await self._unmet(request, error)
        raise error

    async def _unmet(self, request: GcsRequest, error: StoreError) -> StoreError:
        """Return the condition that did not hold, and the present state."""
        op, path, dest = request.op, request.path, request.dest
        if request.new:
            there = await self._files.find(request.look, dest) if request.generation else None
            if there is not None:
                found = f"generation {_number(there)} is already at {dest}"
                return ExistsError(op, path, f"{error.detail}: {found}")
            if not request.generation:
                return error
        here = await self._files.find(request.look, path)
        if here is None:
            return NotFoundError(op, path, f"{error.detail}: it is gone")
        if _number(here) == request.generation:
            return UnavailableError(op, path, f"{error.detail}: it was changed and restored")
        found = f"generation {_number(here)} exists, not {request.generation}"
        return PreconditionError(op, path, f"{error.detail}: {found}")

    # --- in two steps ------------------------------------------------------------------------

    async def _in_two_steps(self, request: GcsRequest, source: str, target: str) -> None:
        """Copy an object and delete it, where it cannot be moved."""
        if not request.generation:
            here = await self._files.find(request.look, request.path)
            if here is None:
                missing = NotFoundError(request.op, request.path, "there is no such object")
                await self._rename_directory(request, missing)
                return
            request = request._replace(generation=_number(here))
        conditions = f"&ifSourceGenerationMatch={request.generation}"
        if request.new:
            conditions += "&ifGenerationMatch=0"
        metadata = await self._files.marked(request, source)
        answer = await self._files.rewrite(request, source, target, conditions, metadata)
        if answer is not None:
            await self._not_copied(request, answer)
        if self._can is None:
            self._can = False
            self._without()
        await self._delete_source(request, source)

    async def _not_copied(self, request: GcsRequest, answer: Response) -> None:
        """Raise why an object was not copied, unless it had been before."""
        error = self._client.error(request, answer)
        if answer.status != 412:
            raise error
        look = request.look
        here = await self._files.find(look, request.path)
        there = await self._files.find(look, request.dest) if request.new else None
        if here is not None and there is not None and _is_copy(there, here, request.generation):
            return
        raise await self._unmet(request, error)

    async def _delete_source(self, request: GcsRequest, source: str) -> None:
        client = self._client
        url = client.objects + source
        try:
            answer = await client.ask(
                request, "DELETE", url, f"ifGenerationMatch={request.generation}"
            )
            # Gone, or replaced since: another sending did it, and what is there now is not ours.
            client.need(request, answer, 200, 204, 404, 412)
        except _PASSING as error:
            busy = isinstance(error, ThrottledError) or getattr(error, "busy", False)
            text = f"copied to {request.dest}, and the source may still be there: {error.detail}"
            raise OutcomeUnknownError(request.op, request.path, text, busy=busy) from error
        except StoreError as error:
            error.add_note(f"it was copied to {request.dest}; the source is still there")
            raise

    # --- folders -----------------------------------------------------------------------------

    async def _rename_directory(self, request: GcsRequest, missing: StoreError) -> None:
        """Move a folder and its content; raise ``missing`` if there is none."""
        client, files, look = self._client, self._files, request.look
        if not await files.is_directory(look, request.path):
            raise missing
        if not client.hierarchical:
            raise UnsupportedError(
                f"rename {request.path}: it is a directory, which must be moved object by object "
                "in a bucket without a hierarchical namespace"
            )
        if f"{request.dest}/".startswith(f"{request.path}/"):
            raise RejectedError(request.op, request.path, "cannot be moved into itself")
        if await files.find(look, request.dest) is not None:
            kind = ExistsError if request.new else PreconditionError
            raise kind(request.op, request.path, f"a file is at {request.dest}")
        answer = await self._rename_folder(request)
        if answer.status == 412:  # it does not make the folder that the new one goes to
            await files.make_folder(request, request.dest.rpartition("/")[0])
            answer = await self._rename_folder(request)
        if answer.status == 409 and await files.is_directory(look, request.dest):
            text = f"a folder is at {request.dest}"
            raise ExistsError(request.op, request.path, text)
        client.need(request, answer, 200)
        await self._finish(request, self._operation(request, answer))

    async def _rename_folder(self, request: GcsRequest) -> Response:
        client = self._client
        source, target = client.encode(request, request.path), client.encode(request, request.dest)
        url = f"{client.folders}{source}%2F/renameTo/folders/{target}%2F"
        return await client.ask(request, "POST", url, _OPERATION)

    async def _finish(self, request: GcsRequest, operation: dict[str, Any]) -> None:
        """Wait for the end of a long-running operation; raise its error."""
        name = operation["name"]
        url = f"{self._client.place.bucket_path}/operations/{name.rpartition('/')[2]}"
        clock = asyncio.get_running_loop().time
        end, wait = clock() + self._patience, self._first
        while not operation.get("done"):
            if clock() >= end:
                text = f"the operation {name} did not end within {self._patience:g} s"
                raise OutcomeUnknownError(request.op, request.path, text)
            await self._sleep(wait)
            wait = min(wait * 1.5, self._most)
            operation = await self._look(request, url) or operation
        self._judge(request, name, operation.get("error"))

    async def _look(self, request: GcsRequest, url: str) -> dict[str, Any] | None:
        """Return the state of an operation; ``None`` if it is unknown for now."""
        try:
            answer = await self._client.ask(request.look, "GET", url, _OPERATION)
            self._client.need(request.look, answer, 200)
        except (ThrottledError, UnavailableError):
            return None
        except StoreError as error:
            text = f"its operation {url.rpartition('/')[2]} cannot be read: {error.detail}"
            raise OutcomeUnknownError(request.op, request.path, text) from error
        return self._operation(request, answer)

    def _operation(self, request: GcsRequest, answer: Response) -> dict[str, Any]:
        try:
            found = json_of(answer.body)
            if not isinstance(found.get("name"), str):
                raise ValueError("the response is not an operation")
        except ValueError as error:
            raise self._client.unread(request, error) from None
        return found

    def _judge(self, request: GcsRequest, name: str, error: object) -> None:
        if not error:
            return
        code, message = 0, ""
        if isinstance(error, dict):
            code, message = error.get("code", 0), str(error.get("message", ""))
        kind = _CODES.get(code, RejectedError)
        detail = self._client.judge.told(message)
        raise kind(request.op, request.path, f"{detail} (to {request.dest}; {name})")


def _number(info: Info) -> str:
    return (info.etag or "").partition("-")[0]


def _is_copy(there: Info, here: Info, generation: str) -> bool:
    """Return whether the destination holds the copy of an earlier sending."""
    same = there.size == here.size and _number(here) == generation
    return same and there.token == mark_of(here.path, generation)
