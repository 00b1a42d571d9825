"""Delete the garbage of dead jobs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from asynccommit.api import StorageOptions
from asynccommit.commit.by_upload.abort_uploads import abort_uploads
from asynccommit.commit.layouts.layout import Layout
from asynccommit.engine.deletes import delete_tree
from asynccommit.errors import (
    AsyncCommitError,
    ExistsError,
    NotFoundError,
    PreconditionError,
)
from asynccommit.inspect.discovery import open_layout, open_place
from asynccommit.inspect.garbage import Garbage, GarbageKind, Sweep, measure
from asynccommit.inspect.open_uploads import OpenUpload, list_open
from asynccommit.options.job import Options
from asynccommit.redact import redact
from asynccommit.stores.base import Store
from asynccommit.stores.multipart import MultipartStore
from asynccommit.stores.tree import remove_directory, remove_file


@dataclass(slots=True)
class GarbageResult:
    """The result of deleting garbage.

    Attributes:
        done: what was deleted.
        failures: what was not, with the reason.
    """

    done: list[Garbage] = field(default_factory=list)
    failures: list[tuple[Garbage, str]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "deleted": [one.to_json() for one in self.done],
            "failures": [{**one.to_json(), "error": why} for one, why in self.failures],
        }


async def collect(
    sweep: Sweep, options: Options | None = None, storage: StorageOptions = None
) -> GarbageResult:
    """Delete garbage; a failure does not prevent the rest.

    Jobs are aborted, which is refused if one has become alive since. A directory that has changed
    since it was found is kept. Nothing is deleted where an unfinished commit forbids it.

    Args:
        sweep: what was found.
        options: of the jobs.
        storage: options of the store.

    Raises ``StoreError`` if the store cannot be opened or listed.
    """
    result = GarbageResult()
    if sweep.blocked:
        return result
    uploads = [one for one in sweep.garbage if one.kind is GarbageKind.UPLOAD]
    async with open_place(sweep.dest, storage) as store:
        for one in sweep.garbage:
            if one.kind is GarbageKind.UPLOAD:
                continue
            try:
                why = await _delete(store, one, options or Options(), storage)
            except AsyncCommitError as error:
                why = redact(str(error))
            if why:
                result.failures.append((one, why))
            else:
                result.done.append(one)
        if uploads:
            await _abort(cast(MultipartStore, store), sweep, uploads, result)
        with suppress(ExistsError, NotFoundError, PreconditionError):
            await remove_directory(store, Layout(sweep.dest, "any").temporary)
    return result


async def _delete(store: Store, one: Garbage, options: Options, storage: StorageOptions) -> str:
    """Delete one thing; return why it was kept, or nothing."""
    if one.layout is not None:
        async with open_layout(one.layout, options, storage) as committer:
            return (await committer.abort_job("asynccommit gc", careful=True)).kept
    if (await measure(store, one.path)).changed != one.changed:
        return "it has changed meanwhile"
    try:
        if one.kind is GarbageKind.FILE:
            await remove_file(store, one.path)
            return ""
        report = await delete_tree(store, one.path, on_error="continue")
    except NotFoundError:
        return ""
    return report.failures[0].reason if report.failures else ""


async def _abort(
    store: MultipartStore, sweep: Sweep, found: Sequence[Garbage], result: GarbageResult
) -> None:
    by_id = {one.upload.upload[:2]: one for one in found if isinstance(one.upload, OpenUpload)}
    chosen = [one.upload.upload for one in found if one.upload is not None]
    done = await abort_uploads(store, chosen, lambda: list_open(store, sweep.dest.path))
    failed = {upload[:2] for upload, _ in done.failures}
    result.failures += [(by_id[upload[:2]], redact(str(error))) for upload, error in done.failures]
    result.done += [one for name, one in by_id.items() if name not in failed]
