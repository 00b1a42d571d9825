"""A bucket in bad weather: what is told, what happens, and where processes die."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

import pytest

from asynccommit.errors import (
    DeniedError,
    ExistsError,
    NotFoundError,
    OptionError,
    OutcomeUnknownError,
    PreconditionError,
    RejectedError,
    StoreError,
    ThrottledError,
    UnavailableError,
    UnsupportedError,
)
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.parts import Part
from asynccommit.stores.urls import Address
from asynccommit.testing.models.crashes import Crash, Crashed, MortalS3Store, Process, When
from asynccommit.testing.models.fault_rules import KINDS, Climate, Fault, FaultInjector
from asynccommit.testing.models.latency import Latency
from asynccommit.testing.models.s3.client import SimS3Store
from asynccommit.testing.models.s3.model import S3Bucket, S3Service, UploadRules
from asynccommit.testing.models.s3.refusals import CODES, OPS, S3, WRITES
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.testing.models.s3.bench import Clock, Ids, new_bucket, open_store

ADDRESS = Address("s3", "data", "/")


def stormy(*faults: Fault) -> SimS3Store:
    """Return a store with a file, that rules may strike."""
    bucket = new_bucket(UploadRules(smallest_part=1))
    bucket.put("f", b"data")
    weather = FaultInjector(random.Random(1), lambda: 0.0, Climate(faults), S3)
    return open_store(bucket=bucket, weather=weather)


def test_it_needs_a_bucket() -> None:
    """A store over nothing, or over a bucket that is not there, is refused when it is opened."""
    with pytest.raises(OptionError, match="bucket is None"):
        SimS3Store(ADDRESS, {})
    service = S3Service(now=Clock(), new_id=Ids())
    with pytest.raises(OptionError, match="data: 404 NoSuchBucket"):
        SimS3Store(ADDRESS, {"service": service})
    service.create_bucket("data")
    assert repr(SimS3Store(ADDRESS, {"service": service})) == "SimS3Store(data)"


def test_it_says_what_it_can() -> None:
    """It renames nothing, takes parts, deletes in bulk, and names what shares its limit."""
    traits = open_store(UploadRules(smallest_part=7)).traits
    assert traits.multipart is not None
    assert (traits.multipart.smallest, traits.bulk_delete, traits.put_tokens) == (7, 1000, True)
    assert (traits.atomic_rename, traits.rename_replaces) == (False, False)
    assert traits.account == "sim:s3:data"


async def test_what_it_cannot_do_is_said() -> None:
    """There are no renames, no trees deleted at once, and the root stays."""
    store = stormy()
    with pytest.raises(UnsupportedError, match="rename /f"):
        await store.rename("/f", "/g")
    with pytest.raises(UnsupportedError, match="remove_tree"):
        await store.delete_tree("/f")
    with pytest.raises(RejectedError, match="root"):
        await store.delete("/")
    assert (await store.head("/")).kind is Kind.DIRECTORY
    await store.mkdir("/")
    assert await store.delete_many([]) == []


async def test_keys_that_no_path_names_are_shown_as_such() -> None:
    """Empty segments and dots are neither files nor directories, and can be deleted by a tree."""
    store = stormy()
    store.bucket.put("a//b", b"")
    store.bucket.put("a/../c/", b"")
    page = await store.list("/a")
    assert sorted((info.path, info.kind) for info in page.entries) == [
        ("/a/../", Kind.OTHER),
        ("/a//", Kind.OTHER),
    ]
    tree = (await store.list_tree("/a")).entries
    assert await store.delete_many(tree) == [None, None]
    assert list(store.bucket.objects) == ["f"]


Act = Callable[[SimS3Store], Awaitable[object]]

READS: list[Act] = [
    lambda store: store.head("/f"),
    lambda store: store.get("/f", 100),
    lambda store: store.list("/"),
    lambda store: store.list_tree("/"),
    lambda store: store.list_uploads("/"),
    lambda store: store.completed("/f", [Part("0" * 32)]),
]
PUTS: list[Act] = [
    lambda store: store.put("/g", b"data"),
    lambda store: store.put_marker("/g", {}),
    lambda store: store.copy("/f", "/g"),
    lambda store: store.mkdir("/g"),
    lambda store: store.create_upload("/g"),
    lambda store: store.delete_many([Info("/f", Kind.FILE)]),
]
SAID: list[tuple[str, str, type[StoreError], type[StoreError]]] = [
    # kind, code -> what a read is told, what a write is told
    ("before", "SlowDown", ThrottledError, ThrottledError),
    ("before", "ServiceUnavailable", ThrottledError, ThrottledError),
    ("before", "RequestTimeout", UnavailableError, UnavailableError),
    ("before", "OperationAborted", UnavailableError, UnavailableError),
    ("before", "AccessDenied", DeniedError, DeniedError),
    ("before", "NotImplemented", RejectedError, RejectedError),
    ("before", "NoSuchBucket", RejectedError, RejectedError),
    ("after", "InternalError", UnavailableError, OutcomeUnknownError),
    ("cut", "", UnavailableError, OutcomeUnknownError),
    ("cut_before", "", UnavailableError, OutcomeUnknownError),
]


@pytest.mark.parametrize("kind, code, read, written", SAID)
async def test_what_went_wrong_is_told(
    kind: str, code: str, read: type[StoreError], written: type[StoreError]
) -> None:
    """A refusal is one; silence and a failure of the service leave a write unknown."""
    for act in READS:
        with pytest.raises(read):
            await act(stormy(Fault(kind, code=code)))
    for act in PUTS:
        with pytest.raises(written):
            await act(stormy(*(Fault(kind, op, code=code) for op in WRITES)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_completion_takes_effect_or_not_as_the_weather_says(kind: str) -> None:
    """Before and cut before do nothing; late does it in the end; all others do it."""

    async def main() -> tuple[set[str], set[str]]:
        store = stormy(Fault(kind, "complete_upload", delay=Latency(first=5.0)))
        upload_id = await store.create_upload("/g")
        part = await store.put_part("/g", upload_id, 1, b"new")
        try:
            await store.complete_upload("/g", upload_id, [part])
        except StoreError:
            assert kind not in ("slow", "again")
        then = set(store.bucket.objects)
        await store.aclose()
        return then, set(store.bucket.objects)

    then, at_last = run_virtual(main())
    assert ("g" in then) == (kind not in ("before", "cut_before", "late"))
    assert ("g" in at_last) == (kind not in ("before", "cut_before"))


def test_an_answer_that_never_comes_is_given_up() -> None:
    """After the patience of the store, and the write is unknown."""

    async def main() -> None:
        store = stormy(Fault("late", "put", reply="never", delay=Latency(first=1.0)))
        store._patience = 9.0
        with pytest.raises(OutcomeUnknownError):
            await store.put("/g", b"")
        await store.aclose()

    run_virtual(main())


def test_a_part_that_is_slow_races_with_the_abort() -> None:
    """It was on its way when the upload was aborted: it stays, and is aborted again."""

    async def main() -> None:
        store = open_store(
            UploadRules(),
            weather=FaultInjector(
                random.Random(1), lambda: 0.0, Climate(latency=Latency(first=1.0)), S3
            ),
        )
        upload_id = await store.create_upload("/f")
        sent = asyncio.ensure_future(store.put_part("/f", upload_id, 1, b"data"))
        await asyncio.sleep(0.5)
        store.bucket.abort("f", upload_id)
        await sent
        assert [one.upload_id for one in (await store.list_uploads("/")).entries] == [upload_id]
        with pytest.raises(NotFoundError):
            await store.complete_upload("/f", upload_id, [await sent])
        with pytest.raises(NotFoundError):
            await store.put_part("/f", upload_id, 2, b"data")
        await store.abort_upload("/f", upload_id)
        assert (await store.list_uploads("/")).entries == ()

    run_virtual(main())


async def test_a_conflict_is_told_by_what_can_be_done() -> None:
    """A put can be sent again; an upload has to be begun anew, which nobody but its writer can."""
    store = stormy(Fault("before", code="ConditionalRequestConflict"))
    with pytest.raises(UnavailableError):
        await store.put("/g", b"", overwrite=False)
    with pytest.raises(PreconditionError):
        await store.complete_upload("/g", "id", [Part("0")], overwrite=False)


async def test_a_condition_that_failed_says_that_something_is_there() -> None:
    """412 to what must be new is that it exists; to a copy by etag that it is another."""
    store = stormy()
    store.bucket.put("g", b"")
    with pytest.raises(ExistsError):
        await store.put("/f", b"", overwrite=False)
    with pytest.raises(ExistsError):
        await store.copy("/f", "/g", overwrite=False)
    with pytest.raises(PreconditionError):
        await store.copy_if("/f", "/g", "0" * 32)


def test_the_dialect_knows_the_service() -> None:
    """Its codes are the service's, each with a status and words; what is busy is refused."""
    assert S3.codes is CODES
    assert set(WRITES) < set(OPS)
    assert all(400 <= status < 600 and words for status, words in CODES.values())
    no = S3.refuse("SlowDown", None, {"Retry-After": "3"})
    assert (no.status, no.headers) == (503, {"Retry-After": "3"})
    assert S3.refuse("Strange", "words", None).status == 500
    climate = Climate.from_json('{"faults": [{"kind": "before", "op": "complete_upload"}]}', S3)
    assert climate.faults[0].op == "complete_upload"


async def test_a_wait_that_the_service_asked_for_is_told() -> None:
    """It comes with the error."""
    with pytest.raises(ThrottledError) as caught:
        await stormy(Fault("before", retry_after=3.0)).head("/f")
    assert caught.value.retry_after == 3.0


@pytest.mark.parametrize("when", When)
def test_a_process_dies_at_a_request(when: When) -> None:
    """Its last write has taken effect, or not, or does so later; none comes after it."""

    async def main() -> tuple[S3Bucket, set[str], Process]:
        bucket, process = new_bucket(UploadRules()), Process("one", Crash(3, when, late=5.0))
        store = MortalS3Store(ADDRESS, {"bucket": bucket}, process)
        upload_id = await store.create_upload("/f")
        part = await store.put_part("/f", upload_id, 1, b"data")
        with pytest.raises(Crashed):
            await store.complete_upload("/f", upload_id, [part])
        then = set(bucket.objects)
        with pytest.raises(Crashed):
            await store.head("/f")
        await store.aclose()
        return bucket, then, process

    bucket, then, process = run_virtual(main())
    assert then == ({"f"} if when is When.AFTER else set())
    assert set(bucket.objects) == (set() if when is When.BEFORE else {"f"})
    assert process.writes == ["create_upload /f", "put_part /f", "complete_upload /f"]
