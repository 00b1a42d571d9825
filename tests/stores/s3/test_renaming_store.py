"""Directory buckets beyond the contract of stores: sessions, renames and the probe."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any

import pytest

from asynccommit import open_job, open_store
from asynccommit.errors import (
    DeniedError,
    ExistsError,
    NotFoundError,
    OptionError,
    PreconditionError,
    RejectedError,
    UnavailableError,
    UnsupportedError,
)
from asynccommit.runtime.host import this_host
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.registry import STORES, StoreSettings, wrap
from asynccommit.stores.s3.renaming_objects import tagged, version_of
from asynccommit.stores.s3.renaming_store import S3RenamingStore, open_s3
from asynccommit.stores.s3.store import S3Store
from asynccommit.stores.urls import parse_url
from asynccommit.testing import ExpressEmulator
from asynccommit.testing.emulators.s3_express.app import ExpressApp
from asynccommit.testing.emulators.s3_express.inprocess import ExpressInProcess
from asynccommit.testing.models.s3.directory_bucket import DirectoryRules, DirectoryService
from tests.support.express import BUCKET, OPTIONS, SWITCHES, URL, new_service, new_store

NEAR = {**OPTIONS, "endpoint_url": "http://127.0.0.1:1"}


@dataclass
class Clock:
    """A clock that is set by hand, for service and store."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def clocked(clock: Clock, switches: DirectoryRules | None = None) -> tuple[Any, DirectoryService]:
    """Return a store and a service of one clock."""
    host = replace(this_host(), now=clock)
    service = new_service(switches, host=host)
    transport = ExpressInProcess(ExpressApp(service))
    store = S3RenamingStore(parse_url(URL), OPTIONS, environ={}, host=host, transport=transport)
    return store, service


# --- sessions --------------------------------------------------------------------------------


async def test_a_session_is_renewed_before_it_ends() -> None:
    """One serves all requests for three minutes; then another is made."""
    clock = Clock()
    store, service = clocked(clock)
    sessions = service.bucket(BUCKET).sessions
    for _ in range(5):
        await store.put("/a", b"1")
    assert len(sessions) == 1
    clock.now += 200
    await store.put("/a", b"2")
    assert len(sessions) == 2
    clock.now += 150  # the first has ended
    assert await store.get("/a", 9) == b"2"


async def test_a_session_that_the_service_has_ended_is_renewed() -> None:
    """The refused request had no effect, and succeeds when it is sent again."""
    store, service = clocked(Clock())
    await store.put("/a", b"1")
    sessions = service.bucket(BUCKET).sessions
    for token, session in sessions.items():
        sessions[token] = session._replace(expires=0.0)
    with pytest.raises(UnavailableError, match="has been renewed"):
        await store.get("/a", 9)
    assert await store.get("/a", 9) == b"1"


async def test_copies_are_signed_by_the_callers_own_keys() -> None:
    """The service refuses a session there."""
    store, _ = clocked(Clock())
    await store.put("/a", b"1")
    await store.copy("/a", "/b")
    assert await store.get("/b", 9) == b"1"


async def test_no_session_is_an_error_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    """It says what is needed; neither it nor a log line nor a repr has a key."""
    caplog.set_level(logging.DEBUG)
    service = new_service()
    transport = ExpressInProcess(ExpressApp(service, keys={"test": "another"}))
    given = {**OPTIONS, "secret": "hunter2-hunter2"}
    store = S3RenamingStore(parse_url(URL), given, environ={}, transport=transport)
    with pytest.raises(
        DeniedError, match=r"no session of the bucket: .*SignatureDoesNot"
    ) as caught:
        await store.put("/a", b"1")
    assert "hunter2" not in f"{caught.value} {store!r} {caplog.text}"


async def test_no_text_has_the_keys_of_a_session(caplog: pytest.LogCaptureFixture) -> None:
    """They are redacted from whatever a server says."""
    caplog.set_level(logging.DEBUG)
    store, service = clocked(Clock())
    await store.put("/a", b"1")
    session = next(iter(service.bucket(BUCKET).sessions.values()))
    credential = store._client._credential
    said = credential.hide(f"{session.secret} {session.token}")
    for secret in (session.secret, session.token):
        assert secret not in f"{said} {credential!r} {store!r} {caplog.text}"


# --- renames ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SWITCHES)
async def test_the_refusal_of_a_rename_says_what_is_so(kind: str) -> None:
    """Whatever code the service has: what is at both places decides."""
    store = new_store(new_service(SWITCHES[kind]))
    info = await store.put("/a", b"1")
    with pytest.raises(PreconditionError, match="etag of the source"):
        await store.rename("/a", "/b", etag="0" * 32)
    await store.put("/b", b"2")
    with pytest.raises(ExistsError, match="something is at /b"):
        await store.rename("/a", "/b", etag=info.etag)
    await store.delete("/b")
    await store.rename("/a", "/b", etag=info.etag)
    with pytest.raises(NotFoundError, match="no such object"):
        await store.rename("/a", "/b", etag=info.etag)


async def test_a_file_that_is_gone_is_missed_even_where_a_directory_is() -> None:
    """Who names an etag asks for a file; without one a directory is refused as a directory."""
    store = new_store(new_service())
    await store.put("/t/loose/of-another", b"x")
    etag = (await store.put("/t/f", b"x")).etag

    with pytest.raises(NotFoundError):
        await store.rename("/t/loose", "/t/aside", etag=etag)
    with pytest.raises(UnsupportedError, match="object by object"):
        await store.rename("/t/loose", "/t/aside")


@pytest.mark.parametrize("kind", SWITCHES)
async def test_a_rename_that_was_undone_is_done_again(kind: str) -> None:
    """No token of an earlier one lets the service do nothing and say that it did."""
    store = new_store(new_service(SWITCHES[kind]))
    await store.put("/a", b"1")
    for _ in range(2):
        await store.rename("/a", "/b")
        await store.rename("/b", "/a")
    await store.rename("/a", "/b")
    assert (await store.head("/b")).size == 1


@pytest.mark.parametrize("etag", ["abc", "a-2", "50%-off", "%2D-"])
def test_the_version_of_an_etag_is_the_services_own(etag: str) -> None:
    """Whatever it holds, also what separates the parts here."""
    whole = tagged(etag, {"x-amz-checksum-crc32": "AAAA=-2", "x-amz-checksum-type": "COMPOSITE"})
    assert version_of(whole) == f'"{etag}"'
    assert whole.partition("-")[2] == "CRC32:AAAA=-2"


# --- which store -----------------------------------------------------------------------------


def test_the_name_of_the_bucket_or_the_option_decides() -> None:
    """Directory buckets rename; another one if that is said; none otherwise."""
    assert type(open_s3(parse_url(URL), OPTIONS)) is S3RenamingStore
    assert type(open_s3(parse_url("s3://data/"), {**OPTIONS, "rename": "true"})) is S3RenamingStore
    assert type(open_s3(parse_url("s3://data/"), OPTIONS)) is S3Store
    with pytest.raises(OptionError, match="rename is false, but"):
        open_s3(parse_url(URL), {**OPTIONS, "rename": False})
    assert STORES["s3"].endswith(".open_s3")


async def test_a_zone_without_its_region_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer could name it: the host would not exist."""
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nowhere")
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    given = {"key": "test", "secret": "test"}
    transport = ExpressInProcess(ExpressApp(new_service()))
    store = S3RenamingStore(parse_url(URL), given, environ={}, transport=transport)
    with pytest.raises(DeniedError, match="the zone use1-az4 is unknown: set region"):
        await store.put("/a", b"1")


# --- the probe -------------------------------------------------------------------------------


async def test_the_probe_leaves_nothing_and_is_remembered() -> None:
    """It is sent once for a server; what it has found is a trait."""
    async with ExpressEmulator() as emulator:
        given = {"endpoint_url": emulator.endpoint, "key": "test", "secret": "test"}
        store = S3RenamingStore(parse_url(URL), given, environ={})
        before = store.traits.conditions_proven
        await store.learn("/job")
        assert (before, store.traits.conditions_proven) == (False, True)
        assert emulator.service.bucket(BUCKET).objects == {}
        renames = emulator.weather.requests["rename"]
        other = S3RenamingStore(parse_url(URL), given, environ={})
        await other.learn("/job")
        assert (renames, emulator.weather.requests["rename"]) == (3, 3)
        await store.aclose()
        await other.aclose()


async def test_a_server_that_does_not_rename_is_refused_by_name() -> None:
    """The error says what it lacks, and what to do."""
    service = new_service(DirectoryRules(renames=False))
    transport = ExpressInProcess(ExpressApp(service))
    given = {**NEAR, "endpoint_url": "http://127.0.0.1:2"}
    store = S3RenamingStore(parse_url(URL), given, environ={}, transport=transport)
    with pytest.raises(RejectedError, match=r"does not know RenameObject .* directory bucket"):
        await store.learn("/job")
    assert service.bucket(BUCKET).objects == {}


# --- whole jobs ------------------------------------------------------------------------------


@pytest.mark.parametrize("keeps", [True, False])
async def test_a_job_commits_by_renames(keeps: bool) -> None:
    """Files that were put and streamed appear; nothing of the job is left but the marker."""
    async with ExpressEmulator(switches=DirectoryRules(keeps_etag=keeps)) as emulator:
        storage = {"endpoint_url": emulator.endpoint, "key": "test", "secret": "test"}
        async with open_job(f"{URL}t", storage_options=storage) as job, job.task(0) as task:
            await task.put("day=1/a", b"rows")
            async with await task.open("day=1/b") as file:
                await file.write(b"r" * (17 << 20))
        objects = emulator.service.bucket(BUCKET).objects
        assert set(objects) == {"t/_SUCCESS", "t/day=1/a", "t/day=1/b"}
        assert objects["t/day=1/b"].size == 17 << 20
        assert not emulator.service.bucket(BUCKET).uploads.open
        report = job.report
        assert report is not None
        assert report.files == 2


async def test_directories_of_open_uploads_keep_no_job() -> None:
    """The open upload of a killed task shows as a directory, and hinders no commit or abort."""
    async with ExpressEmulator() as emulator:
        storage = {"endpoint_url": emulator.endpoint, "key": "test", "secret": "test"}
        async with open_store(URL, storage_options=storage) as store:
            assert isinstance(store, Wrapped)
            await store.begin_stream("/t/day=7/left", "/t/day=7")
            await store.begin_stream("/t/_temporary/other/00/tasks/x/left", "/t")
            assert [info.path for info in (await store.list("/t")).entries] != []
        with pytest.raises(RuntimeError, match="enough"):
            async with open_job(f"{URL}t", storage_options=storage) as job, job.task(0) as task:
                await task.put("day=7/a", b"rows")
                raise RuntimeError("enough")
        async with open_job(f"{URL}t", storage_options=storage) as job, job.task(0) as task:
            await task.put("day=7/a", b"rows")
        assert set(emulator.service.bucket(BUCKET).objects) == {"t/_SUCCESS", "t/day=7/a"}


async def test_a_lost_rename_is_settled_without_a_token() -> None:
    """The response is lost and the token is not remembered: content and source tell."""
    from random import Random

    from asynccommit.testing.models.fault_rules import Climate, Fault, FaultInjector
    from asynccommit.testing.models.s3.refusals import S3_EXPRESS

    for switches in SWITCHES.values():
        service = new_service(switches)
        climate = Climate((Fault("cut", op="rename", times=1),))
        weather = FaultInjector(Random(0), lambda: 0.0, climate, S3_EXPRESS)
        transport = ExpressInProcess(ExpressApp(service), weather)
        raw = S3RenamingStore(parse_url(URL), OPTIONS, environ={}, transport=transport)
        store = wrap(raw, StoreSettings(Random(0)))
        info = await store.put("/a", b"1")
        await store.rename("/a", "/b", etag=info.etag)
        assert set(service.bucket(BUCKET).objects) == {"b"}
