"""The requests of the probe on other projects' servers, and who sends none."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from asynccommit.commit.by_upload.magic import MagicCommitter
from asynccommit.commit.layouts.uploads import MagicLayout
from asynccommit.errors import CommitError, RejectedError
from asynccommit.options.job import Options
from asynccommit.runtime.host import this_host
from asynccommit.stores.http.base import HttpSettings, Response
from asynccommit.stores.http.client import open_transport
from asynccommit.stores.s3.known_servers import KNOWN
from asynccommit.stores.s3.store import S3Store
from asynccommit.stores.urls import Address, parse_url
from tests.support.s3_answers import Direct, Sent, answering, bare, error, new_s3
from tests.support.s3_servers import ministack_url, moto_url, new_bucket, options

__all__ = ["ministack_url", "moto_url"]
PROBE = 25
"""Requests of a probe at most."""


class Counting:
    """A transport that counts, and answers some requests in the place of the server."""

    def __init__(self) -> None:
        self.inner = open_transport(HttpSettings())
        self.seen: list[str] = []
        self.deaf = False
        self.denied = ""

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", *, limit: int
    ) -> Response:
        """See ``Transport``."""
        self.seen.append(f"{method} {url}")
        sent = dict(headers)
        if self.deaf:
            sent.pop("if-none-match", None)
        if self.denied and self.denied in url and method != "GET":
            return error("AccessDenied", 403)
        return await self.inner.send(method, url, sent, body, limit=limit)

    async def aclose(self) -> None:
        """See ``Transport``."""
        await self.inner.aclose()


class Place:
    """A bucket on a server, opened anew for each process."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.bucket = new_bucket(url)
        self.opened: list[S3Store] = []

    def open(self, **more: Any) -> tuple[S3Store, Counting]:
        """Return a store of a new process, and what its requests pass."""
        transport = Counting()
        address = parse_url(f"s3://{self.bucket}/")
        store = S3Store(address, options(self.url, **more), environ={}, transport=transport)
        self.opened.append(store)
        return store, transport

    def job(self, store: S3Store) -> MagicCommitter:
        """Return the committer of a new job."""
        layout = MagicLayout(Address("s3", self.bucket, "/t"), this_host().new_id())
        return MagicCommitter(store, layout, Options(), this_host())


@pytest.fixture
async def place(
    moto_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Place]:
    """A bucket on moto, and a cache of this test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = Place(moto_url)
    yield found
    for store in found.opened:
        await store.aclose()


async def test_the_first_set_up_of_a_day_asks(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second job sends nothing for it, and nothing is left; another process asks again.

    A server elsewhere is known to other processes: ``test_known_servers.py``.
    """
    store, sent = place.open()
    await place.job(store).setup_job()
    probe = [one for one in sent.seen if "_probe-" in one]
    assert 20 <= len(probe) <= PROBE
    assert store.traits.conditions_proven
    assert (await store.list_uploads("/")).entries == ()
    assert not [info for info in (await store.list_tree("/")).entries if "_probe" in info.path]
    sent.seen.clear()
    await place.job(store).setup_job()
    assert not [one for one in sent.seen if "_probe-" in one]

    monkeypatch.setattr(KNOWN, "_known", {})
    other, sent = place.open()
    await place.job(other).setup_job()
    assert len([one for one in sent.seen if "_probe-" in one]) == len(probe)


async def test_ministack_keeps_an_etag_of_a_completion(
    ministack_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that can do more is relied on for more: moto cannot."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    store, _ = Place(ministack_url).open()
    before = store.traits.multipart
    await store.learn("/t")
    after = store.traits.multipart
    await store.aclose()
    assert before is not None
    assert after == before._replace(matches=True, abort_tells=True)


async def test_a_server_without_conditions_is_refused_at_the_set_up(place: Place) -> None:
    """Every set-up asks again, so that a newer server is found at once; nothing is left."""
    store, sent = place.open()
    sent.deaf = True
    for _ in range(2):
        sent.seen.clear()
        job = place.job(store)
        with pytest.raises(CommitError, match=r"passes over If-None-Match of PutObject"):
            await job.setup_job()
        assert any("_probe-" in one for one in sent.seen)
        await job.abort_job("refused")
    sent.deaf = False
    assert (await store.list_tree("/")).entries == ()
    await place.job(store).setup_job()
    assert store.traits.conditions_proven


async def test_who_may_not_write_the_probe_gets_the_safe_answer(place: Place) -> None:
    """Nothing is known then, and the commit proves the condition by itself."""
    store, sent = place.open()
    sent.denied = "_probe-"
    await place.job(store).setup_job()
    assert not store.traits.conditions_proven
    sent.denied = ""
    await place.job(store).setup_job()
    assert store.traits.conditions_proven


@pytest.mark.parametrize("said", [True, False])
async def test_an_option_overrides_the_probe(said: bool, place: Place) -> None:
    """The word of the user is taken, either way."""
    store, sent = place.open(conditional_put=said)
    await store.learn("/t")

    assert sent.seen == []
    assert store.traits.conditional_put is said


async def test_aws_is_not_asked() -> None:
    """Its documentation says what it can do."""
    direct = Direct()
    store = new_s3(direct)
    await store.learn("/t")

    assert (direct.seen, store.traits.conditions_proven) == ([], True)


async def test_looking_at_jobs_writes_nothing(place: Place) -> None:
    """Opening, status and listings send reads only."""
    store, sent = place.open()
    job = place.job(store)
    await job.job_statuses()
    await job.job_status()
    await store.list_uploads("/t")

    assert {one.split()[0] for one in sent.seen} <= {"GET", "HEAD"}
    assert not store.traits.conditions_proven


def _no_checksums(sent: Sent) -> Response | None:
    refused = "x-amz-checksum-crc32" in sent.headers
    return error("InvalidArgument", 400, "unknown header") if refused else bare(200, etag='"e"')


async def test_a_server_that_refuses_the_checksum() -> None:
    """The remedy is named where the same request passes without it, and not elsewhere."""
    direct = Direct()
    direct.before = _no_checksums
    store = new_s3(direct, endpoint_url="http://127.0.0.1:9")
    with pytest.raises(RejectedError, match=r"^put .*unknown header.*set checksum=none"):
        await store.learn("/t")
    assert direct.seen[-1].method == "DELETE"

    store = new_s3(answering(error("InvalidArgument", 400)), endpoint_url="http://127.0.0.1:9")
    with pytest.raises(RejectedError, match=r"^put ((?!checksum=none).)*$"):
        await store.learn("/t")
