"""Provide the model as an in-process store: a bucket of S3 without HTTP.

Each request passes the fault injector first, as in ``asynccommit.testing.models.adls.store``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from asynccommit.errors import (
    DeniedError,
    ExistsError,
    NotFoundError,
    OptionError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    StoreError,
    UnavailableError,
    UnsupportedError,
)
from asynccommit.stores.base import Info, Kind, Multipart, Page, Traits
from asynccommit.stores.multipart import PartPage, Upload, UploadPage
from asynccommit.stores.parts import Part
from asynccommit.stores.s3.abilities import PROBE, find_abilities, refuse_lacking
from asynccommit.stores.urls import Address
from asynccommit.testing.models.adls.refusals import Refusal
from asynccommit.testing.models.in_process import Sender, SimRequest
from asynccommit.testing.models.s3.listing import S3Page
from asynccommit.testing.models.s3.model import (
    ABSENT,
    ANY,
    CompletedPart,
    S3Bucket,
    S3Object,
    S3Service,
    SentPart,
)
from asynccommit.testing.models.s3.objects import check_key, is_made_of
from asynccommit.testing.models.s3.uploads import decode_marker, encode_marker

_KINDS: dict[str, type[StoreError]] = {
    "ConditionalRequestConflict": UnavailableError,
    "EntityTooSmall": PreconditionError,
    "InvalidPart": PreconditionError,
    "InvalidPartOrder": PreconditionError,
    "NoSuchBucket": RejectedError,
    "OperationAborted": UnavailableError,
    "RequestTimeout": UnavailableError,
}
# Errors of a completion. One means that it must be uploaded again, which only its writer can do;
# the other, that no object has the etag.
_BARRED = frozenset({"ConditionalRequestConflict", "NoSuchKey"})
_BY_STATUS: dict[int, type[StoreError]] = {
    401: DeniedError,
    403: DeniedError,
    404: NotFoundError,
    412: PreconditionError,
}


def kind_of(asked: SimRequest, answer: Refusal) -> type[StoreError]:
    """Return the store error that a refusal means."""
    if answer.status == 412 and asked.new:
        return ExistsError
    if asked.method == "complete_upload" and answer.code in _BARRED:
        return PreconditionError
    return _KINDS.get(answer.code) or _BY_STATUS.get(answer.status, RejectedError)


T = TypeVar("T")
_WORKERS = 64
_COSTS = {"mkdir": 2, "delete": 2}
_BULK = 1000


class SimS3Store(Sender):
    """One bucket of the model, as a store with multipart uploads.

    It has neither directories nor renames: a directory is implied by the keys of objects, and
    ``mkdir`` creates an empty object whose key ends in a slash. The metadata of ``put_marker`` are
    visible only in the model: no method of a store returns metadata.

    Late effects happen in the background; ``aclose`` waits for them.

    Args:
        address: its authority names the bucket of a service.
        options: ``bucket``, a ``S3Bucket``, or ``service``, a ``S3Service`` that has it; and,
            optionally, ``weather``, a ``Weather`` of the dialect ``S3``; ``patience``, the timeout
            in seconds for a response that never comes; ``page``, the maximum number of entries on a
            page; ``checksum``, the checksum algorithm of uploads; ``workers``, the recommended
            number of requests in flight; ``known``, false for a service of which the store does not
            know whether it enforces conditions and what its aborts report.

    Raises:
        OptionError: the options contain no bucket.
    """

    def __init__(self, address: Address, options: Mapping[str, Any]) -> None:
        super().__init__(options, kind_of)
        self.bucket = _bucket(address, options)
        self._page: int | None = options.get("page")
        self._checksum = str(options.get("checksum", ""))
        self._matches = known = bool(options.get("known", True))
        self._keeps: bool | None = known or None
        self._probes = 0
        rules = self.bucket.rules
        bounds = rules.smallest_part, rules.largest_part, rules.most_parts
        self._traits = Traits(
            "simulated S3",
            directories=False,
            atomic_rename=False,
            atomic_directory_rename=False,
            rename_no_replace=False,
            rename_replaces=False,
            etag_survives_rename=False,
            conditional_rename=False,
            conditions_proven=known,
            atomic_put=True,
            recursive_delete=False,
            bulk_delete=_BULK,
            conditional_delete=rules.conditional_deletes,
            multipart=Multipart(*bounds, True, known, known, bool(self._checksum)),
            put_tokens=True,
            longest_path=1025,
            workers=int(options.get("workers", _WORKERS)),
            account=f"sim:s3:{self.bucket.name}",
            costs=_COSTS,
        )

    def __repr__(self) -> str:
        return f"SimS3Store({self.bucket.name})"

    @property
    def traits(self) -> Traits:
        """The capabilities of this store."""
        return self._traits

    # --- files and directories -----------------------------------------------------------------

    async def head(self, path: str) -> Info:
        """See ``Store.head``."""
        asked = SimRequest("head", path)
        if path != "/":
            found = await self._find(asked, path)
            if found is not None:
                return _shown(found)
            await self._need_below(asked, path)
        return Info(path, Kind.DIRECTORY)

    async def list(self, path: str, token: str | None = None) -> Page:
        """See ``Store.list``."""
        asked, prefix = SimRequest("list", path), prefix_of(path)
        found = await self._list(asked, prefix, token, "/")
        entries = [entry_of(one, tree=False) for one in found.objects if one.key != prefix]
        entries += [directory_of(one) for one in found.prefixes]
        if token is None and not found.objects and not found.prefixes and path != "/":
            if await self._find(asked, path) is not None:
                raise PreconditionError("list", path, "is a file")
            raise NotFoundError("list", path, "there is no such directory")
        return Page(tuple(entries), found.token or None)

    async def list_tree(self, path: str, token: str | None = None) -> Page:
        """See ``BulkStore.list_tree``."""
        prefix = prefix_of(path)
        found = await self._list(SimRequest("list_tree", path), prefix, token, "")
        entries = [entry_of(one, tree=True) for one in found.objects if one.key != prefix]
        return Page(tuple(entries), found.token or None)

    async def get(self, path: str, limit: int) -> bytes:
        """See ``Store.get``."""
        asked = SimRequest("get", path)
        found = await self._find(asked, path, "get") if path != "/" else None
        if found is None:
            raise await self._missing(asked, path)
        if found.size > limit:
            raise RejectedError("get", path, f"holds {found.size} bytes, more than {limit}")
        return found.data

    async def put(
        self, path: str, data: bytes, *, overwrite: bool = True, token: str | None = None
    ) -> Info:
        """See ``Store.put``."""
        asked = SimRequest("put", path, writes=True, new=not overwrite)
        marks = {} if token is None else {TOKEN: token}
        condition = "" if overwrite else ABSENT
        act = partial(self.bucket.put, path[1:], data, metadata=marks, if_none_match=condition)
        return _shown(await self._ask(asked, "put", path, act))._replace(modified=0.0)

    async def learn(self, path: str) -> None:
        """See ``MultipartStore.learn``."""
        self._probes += 1
        trial = SimTrial(self, self.bucket, f"{path}/{PROBE}{self._probes}")
        found = await find_abilities(trial)
        refuse_lacking(found, self.bucket.name, path)
        bounds = self._traits.multipart
        assert bounds is not None
        learned = bounds._replace(matches=found.replaces, abort_tells=found.tells)
        self._matches, self._keeps = found.replaces, found.keeps
        self._traits = replace(self._traits, conditions_proven=True, multipart=learned)

    async def put_marker(self, path: str, metadata: Mapping[str, str]) -> Info:
        """See ``MultipartStore.put_marker``."""
        asked = SimRequest("put_marker", path, writes=True)
        act = partial(self.bucket.put, path[1:], b"", metadata=metadata)
        return _shown(await self._ask(asked, "put", path, act))._replace(modified=0.0)

    async def delete(self, path: str) -> None:
        """See ``Store.delete``."""
        if path == "/":
            raise RejectedError("delete", path, "the root cannot be deleted")
        look, key = SimRequest("delete", path), path[1:]
        if await self._find(look, path) is None:
            found = await self._list(look, f"{key}/", None, "", most=2)
            if not found.objects:
                raise NotFoundError("delete", path, "there is no such object")
            key += "/"
            if [one.key for one in found.objects] != [key]:
                raise ExistsError("delete", path, "the directory is not empty")
        asked = SimRequest("delete", path, writes=True)
        await self._ask(asked, "delete", path, partial(self.bucket.delete, key))

    async def delete_tree(self, path: str) -> None:
        """Raise an error; ``parallel.remove_tree`` sends the many requests."""
        raise UnsupportedError(f"delete_tree {path}: it takes many requests; use remove_tree")

    async def delete_many(self, entries: Sequence[Info]) -> Sequence[StoreError | None]:
        """See ``BulkStore.delete_many``."""
        if not entries:
            return []
        if not self._traits.conditional_delete and len(entries) == 1 and entries[0].is_dir:
            await self._need_below(SimRequest("delete_many", entries[0].path), entries[0].path)
        asked = [SimRequest("delete_many", info.path, writes=True) for info in entries]
        # A directory must exist to be deleted: a condition that any object fulfils checks that.
        keys = [(key_of(info), info.etag or (ANY if info.is_dir else "")) for info in entries]
        act = partial(self.bucket.delete_many, keys)
        refusals = await self._ask(asked[0], "delete_many", entries[0].path, act)
        pairs = zip(asked, refusals, strict=True)
        errors = [no if no is None else self.translated(one, no) for one, no in pairs]
        return errors

    async def copy(self, source: str, dest: str, *, overwrite: bool = False) -> None:
        """See ``Store.copy``."""
        asked = SimRequest("copy", source, writes=True, new=not overwrite)
        condition = "" if overwrite else ABSENT
        act = partial(self.bucket.copy_object, source[1:], dest[1:], if_none_match=condition)
        try:
            await self._ask(asked, "copy", dest, act)
        except NotFoundError:
            raise await self._missing(SimRequest("copy", source), source) from None

    async def copy_if(
        self, source: str, dest: str, etag: str, *, replaces: str | None = None
    ) -> None:
        """See ``MultipartStore.copy_if``."""
        asked = SimRequest("copy_if", source, writes=True)
        if replaces is not None and not self._matches:
            await self._need_etag(SimRequest("copy_if", dest), replaces)
        copy, look = self.bucket.copy_object, SimRequest("copy_if", source)
        act = partial(copy, source[1:], dest[1:], source_if_match=etag, if_match=replaces or "")
        try:
            await self._ask(asked, "copy", dest, act)
        except NotFoundError:
            if replaces is not None and await self._find(look, source) is not None:
                raise PreconditionError("copy_if", source, f"nothing is at {dest}") from None
            raise await self._missing(look, source) from None

    async def rename(
        self,
        source: str,
        dest: str,
        *,
        replace: bool = False,
        etag: str | None = None,
        token: str | None = None,
    ) -> None:
        """Raise ``UnsupportedError``: S3 has no rename."""
        raise UnsupportedError(f"rename {source}: S3 renames nothing; upload in parts, or copy")

    async def mkdir(self, path: str) -> None:
        """See ``Store.mkdir``."""
        if path == "/":
            return
        if await self._find(SimRequest("mkdir", path), path) is not None:
            raise PreconditionError("mkdir", path, "a file is there")
        asked = SimRequest("mkdir", path, writes=True)
        await self._ask(asked, "put", path, partial(self.bucket.put, f"{path[1:]}/", b""))

    async def sync(self, path: str) -> None:
        """Do nothing: ``Store.sync`` has no work here."""

    # --- parts ---------------------------------------------------------------------------------

    async def create_upload(self, path: str, *, token: str | None = None, owner: str = "") -> str:
        """See ``MultipartStore.create_upload``."""
        asked = SimRequest("create_upload", path, writes=True)
        marks = {} if token is None else {TOKEN: token}
        begin = self.bucket.create_upload
        act = partial(begin, path[1:], metadata=marks, algorithm=self._checksum)
        return await self._ask(asked, "create_upload", path, act)

    async def put_part(self, path: str, upload_id: str, number: int, data: bytes) -> Part:
        """See ``MultipartStore.put_part``."""
        asked, bucket = SimRequest("put_part", path, writes=True), self.bucket
        begun = bucket.is_open(path[1:], upload_id)
        args = path[1:], upload_id, number, data
        act = partial(bucket.upload_part, *args, begun=begun)
        return _part(await self._ask(asked, "put_part", path, act))

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
        """See ``MultipartStore.complete_upload``."""
        new = etag is None and not overwrite
        asked = SimRequest("complete_upload", path, writes=True, new=new)
        listed = [CompletedPart(at, part.etag, part.checksum) for at, part in enumerate(parts, 1)]
        if etag is not None and not self._matches:
            await self._need_etag(SimRequest("complete_upload", path), etag)
        conditions = {"if_none_match": ABSENT if new else "", "if_match": etag or ""}
        act = partial(self.bucket.complete, path[1:], upload_id, listed, **conditions)
        made = await self._ask(asked, "complete_upload", path, act)
        return Info(path, Kind.FILE, etag=made.etag)  # The response contains no more.

    async def completed(
        self, path: str, parts: Sequence[Part], token: str | None = None
    ) -> Info | None:
        """See ``MultipartStore.completed``."""
        found = await self._find(SimRequest("completed", path), path)
        if found is None:
            return None
        if token is not None:
            return _shown(found) if found.metadata.get(TOKEN) == token else None
        is_it = is_made_of(found, parts)
        if is_it is None:
            detail = "its etag is not an MD5, and no checksum identifies its content"
            raise OutcomeUnknownError("completed", path, detail)
        return _shown(found) if is_it else None

    async def abort_upload(self, path: str, upload_id: str) -> None:
        """See ``MultipartStore.abort_upload``."""
        if not self._keeps and await self._find(SimRequest("abort_upload", path), path) is not None:
            # The store of S3 tries it with an object of its own: what that shows is known here.
            self._keeps = self.bucket.rules.abort_keeps
            if not self._keeps:
                raise RejectedError("abort_upload", path, "it would delete the object of the key")
        asked = SimRequest("abort_upload", path, writes=True)
        await self._ask(
            asked, "abort_upload", path, partial(self.bucket.abort, path[1:], upload_id)
        )

    async def list_uploads(self, path: str, token: str | None = None) -> UploadPage:
        """See ``MultipartStore.list_uploads``."""
        asked, prefix = SimRequest("list_uploads", path), prefix_of(path)

        def act() -> UploadPage:
            key, upload_id = decode_marker(token, 2) if token else ("", "")
            page = self.bucket.list_uploads(
                prefix, key_marker=key, upload_id_marker=upload_id, most=self._page
            )
            more = encode_marker(page.key_marker, page.upload_id_marker)
            found = (Upload(f"/{one.key}", one.upload_id, one.initiated) for one in page.entries)
            return UploadPage(tuple(found), more if page.key_marker else None)

        return await self._ask(asked, "list_uploads", path, act)

    async def list_parts(self, path: str, upload_id: str, token: str | None = None) -> PartPage:
        """See ``MultipartStore.list_parts``."""

        def act() -> PartPage:
            page = self.bucket.list_parts(
                path[1:], upload_id, marker=int(token or 0), most=self._page
            )
            found = ((one.number, _part(one), len(one.data)) for one in page.entries)
            return PartPage(tuple(found), str(page.marker) if page.marker else None)

        return await self._ask(SimRequest("list_parts", path), "list_parts", path, act)

    async def send(self, asked: SimRequest, act: Callable[[], T]) -> T:
        """Send a request of another object of this store."""
        return await self._ask(asked, asked.method, asked.path, act)

    # --- helpers -------------------------------------------------------------------------------

    async def _find(self, asked: SimRequest, path: str, op: str = "head") -> S3Object | None:
        act: Callable[[], S3Object] = partial(self.bucket.head, path[1:])
        try:
            return await self._ask(asked, op, path, act)
        except NotFoundError:
            return None

    async def _list(
        self,
        asked: SimRequest,
        prefix: str,
        token: str | None,
        delimiter: str,
        most: int | None = None,
    ) -> S3Page:
        def act() -> S3Page:
            if prefix:
                check_key(prefix[:-1])
            return self.bucket.list(
                prefix, delimiter=delimiter, token=token or "", most=most or self._page
            )

        return await self._ask(asked, "list", asked.path, act)

    async def _need_below(self, asked: SimRequest, path: str) -> None:
        found = await self._list(asked, prefix_of(path), None, "", most=1)
        if not found.objects:
            raise NotFoundError(asked.method, path, "there is no such object")

    async def _need_etag(self, asked: SimRequest, etag: str) -> None:
        """Raise an error if the object to be replaced has changed."""
        found = await self._find(asked, asked.path)
        if found is None or found.etag != etag:
            raise PreconditionError(asked.method, asked.path, "another file is there, or none")

    async def _missing(self, asked: SimRequest, path: str) -> StoreError:
        """Return the error for a path without an object."""
        if path != "/":
            try:
                await self._need_below(asked, path)
            except NotFoundError as error:
                return error
        return PreconditionError(asked.method, path, "is a directory")


class SimTrial:
    """The requests that show what a bucket can do; see ``Trial``.

    Args:
        store: what sends them.
        bucket: its bucket.
        path: of an object that nobody else uses.
    """

    def __init__(self, store: SimS3Store, bucket: S3Bucket, path: str) -> None:
        self._store = store
        self._bucket = bucket
        self._path = path

    async def put(
        self,
        data: bytes,
        *,
        new: bool = False,
        etag: str = "",
        checksum: tuple[str, str] = ("", ""),
    ) -> None:
        """See ``Trial.put``: the model knows no checksums of puts."""
        if checksum[0]:
            raise RejectedError("put", self._path, "no checksums")
        key, condition = self._path[1:], ABSENT if new else ""
        act = partial(self._bucket.put, key, data, if_none_match=condition, if_match=etag)
        await self._store.send(SimRequest("put", self._path, writes=True), act)

    async def exists(self) -> bool:
        """See ``Trial.exists``."""
        try:
            await self._store.head(self._path)
        except NotFoundError:
            return False
        return True

    async def delete(self) -> None:
        """See ``Trial.delete``."""
        act = partial(self._bucket.delete, self._path[1:])
        await self._store.send(SimRequest("delete", self._path, writes=True), act)

    async def create(self) -> str:
        """See ``Trial.create``."""
        return await self._store.create_upload(self._path)

    async def send(self, upload_id: str, data: bytes) -> Part:
        """See ``Trial.send``."""
        return await self._store.put_part(self._path, upload_id, 1, data)

    async def complete(
        self, upload_id: str, parts: Sequence[Part], *, new: bool = False, etag: str = ""
    ) -> None:
        """See ``Trial.complete``."""
        listed = [CompletedPart(at, part.etag, part.checksum) for at, part in enumerate(parts, 1)]
        conditions = {"if_none_match": ABSENT if new else "", "if_match": etag}
        act = partial(self._bucket.complete, self._path[1:], upload_id, listed, **conditions)
        await self._store.send(SimRequest("complete_upload", self._path, writes=True), act)

    async def abort(self, upload_id: str) -> None:
        """See ``Trial.abort``."""
        act = partial(self._bucket.abort, self._path[1:], upload_id)
        await self._store.send(SimRequest("abort_upload", self._path, writes=True), act)

    async def show(self, upload_id: str) -> None:
        """See ``Trial.show``."""
        await self._store.list_parts(self._path, upload_id)


def _bucket(address: Address, options: Mapping[str, Any]) -> S3Bucket:
    bucket, service = options.get("bucket"), options.get("service")
    if bucket is None and isinstance(service, S3Service):
        try:
            return service.bucket(address.authority)
        except Refusal as no:
            raise OptionError(f"{address.authority}: {no}; make the bucket first") from None
    if not isinstance(bucket, S3Bucket):
        raise OptionError(f"bucket is {bucket!r}: give a Bucket or a Service of the model")
    return bucket


def _shown(found: S3Object) -> Info:
    return file_of(found)._replace(token=found.metadata.get(TOKEN))


def _part(sent: SentPart) -> Part:
    return Part(sent.etag, sent.algorithm, sent.checksum)


TOKEN = "asynccommit-token"
"""The user metadata that marks a write."""


def prefix_of(path: str) -> str:
    """Return the common prefix of all keys below a directory."""
    return "" if path == "/" else f"{path[1:]}/"


def key_of(info: Info) -> str:
    """Return the key of a listing entry; for a directory, that of its marker object."""
    return prefix_of(info.path) if info.is_dir else info.path[1:]


def file_of(found: S3Object) -> Info:
    """Return the entry of an object, with its key as path."""
    return Info(f"/{found.key}", Kind.FILE, found.size, found.etag, found.modified)


def directory_of(key: str, etag: str | None = None) -> Info:
    """Return the entry of a key that ends in a slash.

    It is of kind ``OTHER``, under the whole key, if no path can name it.
    """
    path = f"/{key[:-1]}"
    if all(word not in ("", ".", "..") for word in path.split("/")[1:]):
        return Info(path, Kind.DIRECTORY, etag=etag)
    return Info(f"/{key}", Kind.OTHER, etag=etag)


def entry_of(found: S3Object, *, tree: bool) -> Info:
    """Return the entry of an object in a listing.

    A directory's entry has an etag only in a tree listing, by which it is deleted.
    """
    if not found.key.endswith("/"):
        return file_of(found)
    return directory_of(found.key, found.etag if tree else None)
