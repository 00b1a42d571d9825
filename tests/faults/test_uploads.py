"""Whole lives of uploads on a bucket in bad weather: each is completed once, or aborted.

What a request that was not answered may leave for ever is an upload that nobody knows, of a create,
and the parts of one that was aborted while they were on their way; a sweep takes both away.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

import pytest

from asynccommit.errors import ExistsError, NotFoundError, OutcomeUnknownError
from asynccommit.stores.base import Info
from asynccommit.stores.parts import Part
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.policies.lost_replies import Recover
from asynccommit.stores.registry import StoreSettings, wrap
from asynccommit.testing.models.fault_rules import Climate, Fault, FaultInjector
from asynccommit.testing.models.latency import Latency
from asynccommit.testing.models.s3.client import SimS3Store
from asynccommit.testing.models.s3.model import S3Bucket, UploadRules
from asynccommit.testing.models.s3.refusals import S3
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.testing.models.s3.bench import EPOCH, Ids, open_store

SEEDS = 40
GROUP = 10
FILES = 40

_LATER = Latency("uniform", 0.0, 30.0)
_FAULTS = (
    Fault("before", probability=0.05),
    Fault("before", probability=0.02, code="OperationAborted"),
    Fault("cut_before", probability=0.03),
    Fault("after", probability=0.04),
    Fault("cut", probability=0.04),
    Fault("slow", probability=0.05, delay=Latency("uniform", 0.0, 5.0)),
    Fault("late", "complete_upload", probability=0.04, delay=_LATER, reply="refusal"),
    Fault("late", "complete_upload", probability=0.04, delay=_LATER, reply="never"),
    Fault("late", "create_upload", probability=0.04, delay=_LATER),
    Fault("late", "abort_upload", probability=0.04, delay=_LATER),
)
_LATE_PARTS = (Fault("late", "put_part", probability=0.04, delay=_LATER),)
LATENCY = Latency("uniform", 0.001, 0.050)


@dataclass
class Life:
    """One upload, and what was said of its end."""

    path: str
    data: bytes
    upload_id: str = ""
    parts: list[Part] = field(default_factory=list)
    said: list[str] = field(default_factory=list)


class Sky:
    """A bucket in a storm, and a store of it as users have it."""

    def __init__(self, seed: int, rules: UploadRules, checksum: str = "") -> None:
        self.rng = random.Random(seed)
        clock = asyncio.get_running_loop().time
        self.bucket = S3Bucket("data", now=lambda: EPOCH + clock(), new_id=Ids(), rules=rules)
        # With a key of the customer a part has another etag each time: one that is sent again and
        # then comes late is not the one that was acknowledged, and the upload is refused.
        faults = _FAULTS if rules.sse_kms else (*_FAULTS, *_LATE_PARTS)
        weather = FaultInjector(random.Random(seed), clock, Climate(faults, LATENCY), S3)
        self.bare: SimS3Store = open_store(
            bucket=self.bucket, weather=weather, patience=0.5, checksum=checksum
        )
        settings = StoreSettings(random.Random(seed), attempts=30)
        self.store: Wrapped = wrap(self.bare, settings)
        self.recover = next(one for one in self.store.policies if isinstance(one, Recover))

    async def begin(self, path: str, data: bytes) -> Life:
        """Upload the parts of a file, all at once."""
        life = Life(path, data)
        life.upload_id = await self.store.create_upload(path)
        pieces = [data[at : at + 10] for at in range(0, len(data), 10)] or [b""]
        numbered = enumerate(pieces, 1)
        sent = [self.store.put_part(path, life.upload_id, at, piece) for at, piece in numbered]
        life.parts = await asyncio.gather(*sent)
        return life

    async def complete(self, life: Life, *, overwrite: bool = False) -> None:
        """Complete it, and note what was said."""
        args = (life.path, life.upload_id, life.parts)
        try:
            made = await self.store.complete_upload(*args, overwrite=overwrite)
        except (ExistsError, NotFoundError, OutcomeUnknownError) as error:
            life.said.append(type(error).__name__)
        else:
            assert made.path == life.path
            life.said.append("completed")

    async def abort(self, life: Life) -> None:
        """Abort it; that there is none is what is said of one that has ended."""
        try:
            await self.store.abort_upload(life.path, life.upload_id)
        except NotFoundError:
            life.said.append("gone")
        else:
            life.said.append("aborted")

    def made(self, life: Life) -> bool:
        """Whether it has become an object."""
        assert not self.bucket.is_open(life.path[1:], life.upload_id), life
        return self.bucket.uploads.ended[life.upload_id].made is not None

    async def end(self, lives: list[Life]) -> None:
        """Let everything happen that is late, and check what is left over."""
        await self.store.aclose()
        known = {life.upload_id: life for life in lives}
        for upload in list(self.bucket.uploads.open.values()):
            assert upload.aborted or upload.upload_id not in known
            assert upload.aborted or not upload.parts
            self.bucket.abort(upload.key, upload.upload_id)
        assert self.bucket.uploads.open == {}


def content(rng: random.Random, name: object) -> bytes:
    """Return the content of a file, which no other has."""
    return f"{name}:".encode() + rng.randbytes(rng.randrange(35))


async def alone(seed: int, rules: UploadRules, checksum: str = "") -> Sky:
    """Complete some and abort others, each path by itself."""
    sky = Sky(seed, rules, checksum)

    async def live(number: int) -> Life:
        life = await sky.begin(f"/t/d={number % 3}/f{number}", content(sky.rng, number))
        if number % 4:
            await sky.complete(life, overwrite=bool(number % 2))
        else:
            await sky.abort(life)
        return life

    lives = await asyncio.gather(*(live(number) for number in range(FILES)))
    await sky.end(lives)
    for number, life in enumerate(lives):
        if number % 4:
            assert life.said == ["completed"]
            assert sky.bucket.objects[life.path[1:]].data == life.data
        else:
            assert life.said in (["aborted"], ["gone"])
        assert sky.made(life) == bool(number % 4)
    assert len(sky.bucket.objects) == FILES - FILES // 4
    return sky


async def rivals(seed: int, rules: UploadRules) -> Sky:
    """Two attempts of each file, of which one must become it, whoever comes first."""
    sky = Sky(seed, rules)

    async def live(number: int) -> Life:
        life = await sky.begin(f"/t/f{number // 2}", content(sky.rng, number))
        await sky.complete(life)
        if life.said == ["ExistsError"]:
            await sky.abort(life)
        return life

    lives = await asyncio.gather(*(live(number) for number in range(FILES)))
    await sky.end(lives)
    for first, second in zip(lives[::2], lives[1::2], strict=True):
        won, lost = (first, second) if sky.made(first) else (second, first)
        assert (sky.made(won), sky.made(lost)) == (True, False)
        assert won.said == ["completed"]
        assert lost.said in (["ExistsError", "aborted"], ["ExistsError", "gone"])
        assert sky.bucket.objects[won.path[1:]].data == won.data
    return sky


async def drivers(seed: int, rules: UploadRules) -> Sky:
    """Two drivers complete the same uploads; of some the second one aborts them instead."""
    sky = Sky(seed, rules)
    lives = await asyncio.gather(
        *(sky.begin(f"/t/f{number}", content(sky.rng, number)) for number in range(FILES))
    )

    async def second(number: int, life: Life) -> None:
        await asyncio.sleep(sky.rng.uniform(0, 0.2))
        await (sky.complete(life) if number % 2 else sky.abort(life))

    await asyncio.gather(
        *(sky.complete(life) for life in lives),
        *(second(number, life) for number, life in enumerate(lives)),
    )
    await sky.end(lives)
    for number, life in enumerate(lives):
        made = sky.made(life)
        if number % 2:
            assert (made, life.said) == (True, ["completed"] * 2)
        elif made:
            assert sorted(life.said) == ["completed", "gone"]
        else:
            # Where a sending was lost, nobody knows what became of it once the upload is gone.
            first, *_ = sorted(life.said)
            assert first in ("NotFoundError", "OutcomeUnknownError")
            assert {"aborted", "gone"} & set(life.said)
        assert made == (life.path[1:] in sky.bucket.objects)
    return sky


SMALL = UploadRules(smallest_part=10)
FORGETS = SMALL._replace(remembers=0.0)
KINDS = {
    "remembers": (SMALL, ""),
    "forgets": (FORGETS, ""),
    "keys of the customer": (FORGETS._replace(sse_kms=True), "SHA256"),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", range(0, SEEDS, GROUP))
def test_alone_every_upload_ends_as_it_was_meant_to(kind: str, first: int) -> None:
    """Completed exactly once, or aborted; every byte is there, and no upload is left over."""
    skies = [run_virtual(alone(seed, *KINDS[kind])) for seed in range(first, first + GROUP)]
    assert sum(sky.recover.recovered["complete_upload"] for sky in skies) > GROUP


@pytest.mark.sample(2)
@pytest.mark.parametrize("first", range(0, SEEDS, GROUP))
def test_of_two_attempts_one_becomes_the_file(first: int) -> None:
    """The other is told that something is there, and takes its upload away."""
    for seed in range(first, first + GROUP):
        run_virtual(rivals(seed, FORGETS if seed % 2 else SMALL))


@pytest.mark.sample(2)
@pytest.mark.parametrize("first", range(0, SEEDS, GROUP))
def test_two_drivers_of_the_same_uploads_agree(first: int) -> None:
    """Both are told that it is completed; one that was aborted is completed for nobody."""
    for seed in range(first, first + GROUP):
        run_virtual(drivers(seed, FORGETS if seed % 2 else SMALL))


def test_where_the_service_tells_nothing_nothing_false_is_said() -> None:
    """With keys of the customer and no checksums what was lost stays unknown, and is not lost."""

    async def main(seed: int) -> int:
        sky = Sky(seed, FORGETS._replace(sse_kms=True))
        data = [content(sky.rng, number) for number in range(FILES)]
        begun = (sky.begin(f"/t/f{number}", one) for number, one in enumerate(data))
        lives = await asyncio.gather(*begun)
        await asyncio.gather(*(sky.complete(life) for life in lives))
        await sky.end(lives)
        assert {word for life in lives for word in life.said} <= {
            *("completed", "OutcomeUnknownError"),
        }
        assert all(sky.made(life) for life in lives)
        return sum(life.said == ["OutcomeUnknownError"] for life in lives)

    assert sum(run_virtual(main(seed)) for seed in range(GROUP)) > 0


def test_a_sweep_takes_away_what_lost_creates_left() -> None:
    """An upload whose create was not answered is known to nobody, and is found by a listing."""

    async def main() -> None:
        sky = Sky(1, SMALL)
        weather = FaultInjector(
            random.Random(1), lambda: 0.0, Climate((Fault("cut", times=2),)), S3
        )
        sky.bare._weather = weather
        life = await sky.begin("/t/f", b"data")
        found = (await sky.store.list_uploads("/t")).entries
        assert len(found) == 3
        assert life.upload_id in {one.upload_id for one in found}
        for one in found:
            if one.upload_id != life.upload_id:
                await sky.store.abort_upload(one.path, one.upload_id)
        assert isinstance(await sky.store.complete_upload("/t/f", life.upload_id, life.parts), Info)
        assert sky.bucket.uploads.open == {}

    run_virtual(main())
