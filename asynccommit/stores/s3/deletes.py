"""Many deletions in one request, and deletions that depend on an etag.

A batch takes an etag for each key, which Amazon checks. Most other servers ignore it and would
delete whatever is there. So ``conditional_delete`` selects the way.
"""

from __future__ import annotations

import asyncio
import hashlib
from base64 import b64encode
from collections.abc import Sequence
from typing import NamedTuple

from asynccommit.errors import OutcomeUnknownError, StoreError, ThrottledError, UnavailableError
from asynccommit.stores.base import Info
from asynccommit.stores.s3.client import S3Client
from asynccommit.stores.s3.errors import S3Request, Said
from asynccommit.stores.s3.objects import S3Objects
from asynccommit.stores.s3.wire import deletion, encode_raw, not_deleted, quoted
from asynccommit.stores.s3.xml import can_say

_PASSING = (ThrottledError, UnavailableError, OutcomeUnknownError)
_AT_ONCE = 8  # requests of those that take the place of a batch
_ANSWER = 4 << 20  # most bytes of what is said of 1,000 keys of a kilobyte


class _S3Deletion(NamedTuple):
    """One of those in a batch."""

    request: S3Request
    key: str
    etag: str | None
    look: bool = False  # whether it is there matters, and a deletion does not tell


class S3Deletions:
    """Deletes objects, many at a time.

    Args:
        client: what sends the requests.
        files: of the same bucket.
    """

    def __init__(self, client: S3Client, files: S3Objects) -> None:
        self._client = client
        self._files = files

    async def delete(self, entries: Sequence[Info]) -> list[StoreError | None]:
        """Delete what ``entries`` name; see ``BulkStore.delete_many``."""
        asked = [self._deletion(info) for info in entries]
        alone = [one for one in asked if self._goes_alone(one)]
        batch = [one for one in asked if not self._goes_alone(one)]
        if len(batch) == 1:
            alone, batch = alone + batch, []
        said = await self._batch(batch) if batch else {}
        turn = asyncio.Semaphore(_AT_ONCE)
        for one, error in zip(
            alone, await asyncio.gather(*(self._alone(one, turn) for one in alone)), strict=True
        ):
            said[one.key] = error
        found = [said.get(one.key) for one in asked]
        if len(found) == 1 and isinstance(found[0], _PASSING):
            raise found[0]
        return found

    def _deletion(self, info: Info) -> _S3Deletion:
        key = info.path[1:] + ("/" if info.is_dir else "")
        etag = info.etag if self._client.settings.conditions != "none" else None
        request = S3Request("delete_many", info.path, writes=True)
        return _S3Deletion(request, key, etag, look=info.is_dir and info.etag is None)

    def _goes_alone(self, one: _S3Deletion) -> bool:
        return (
            one.look
            or not can_say(one.key)
            or (one.etag is not None and self._client.settings.conditions == "single")
        )

    async def _batch(self, batch: Sequence[_S3Deletion]) -> dict[str, StoreError | None]:
        client, request = self._client, batch[0].request
        body = deletion([(one.key, one.etag) for one in batch])
        headers = {"content-type": "application/xml"}
        if client.place.zone:  # directory buckets know no MD5
            headers |= self._files.checksums(body)
        else:
            digest = hashlib.md5(body, usedforsecurity=False).digest()
            # Every server knows this one; some know no other.
            headers["content-md5"] = b64encode(digest).decode()
        answer = await client.ask(request, "POST", None, "delete", headers, body, _ANSWER)
        client.need(request, answer, 200)
        try:
            failed = not_deleted(answer.body)
            if unknown := failed.keys() - {one.key for one in batch}:
                raise ValueError(f"it reports {unknown.pop()[:300]!r}, which was not requested")
        except ValueError as error:
            raise client.late(request, answer, error) from None
        return {
            one.key: self._error(one, failed[one.key]) if one.key in failed else None
            for one in batch
        }

    def _error(self, one: _S3Deletion, said: tuple[str, str]) -> StoreError:
        code, message = said
        return self._client.judge.verdict(one.request, 0, Said(code, message, {}))

    async def _alone(self, one: _S3Deletion, turn: asyncio.Semaphore) -> StoreError | None:
        client = self._client
        headers = {"if-match": quoted(one.etag)} if one.etag else {}
        async with turn:
            try:
                if one.look:
                    await self._files.need_placeholder(one.request)
                answer = await client.ask(one.request, "DELETE", encode_raw(one.key), "", headers)
                client.need(one.request, answer, 204, 200)
            except StoreError as error:
                return error
        return None
