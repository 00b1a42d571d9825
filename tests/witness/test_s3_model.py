"""The model of a bucket against servers of other hands: the same requests, the same answers.

Both are asked through stores: the model through its own, a server through the one that users have.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from asynccommit.errors import NotFoundError, StoreError
from asynccommit.stores.base import Info, Multipart
from asynccommit.stores.multipart import MultipartStore
from asynccommit.stores.parts import Part
from asynccommit.stores.s3.store import S3Store
from asynccommit.testing.models.s3.model import UploadRules
from tests.support.contract_multipart import parts_of, uploads_below
from tests.support.s3_servers import SMALLEST, ministack_url, moto_url, new_bucket, open_s3
from tests.testing.models.s3.bench import open_store

__all__ = ["ministack_url", "moto_url"]

SEEDS = 24
FEWER = 12
STEPS = 60

# Where moto is known to be wrong, and so is not asked:
#   a part of an upload that was aborted   it fails inside (500) instead of 404 NoSuchUpload
#   an upload under another key            it looks at the id alone, and completes it
#   a completion repeated once the object  it answers by what is there, or fails inside, instead of
#     was replaced                         what it said at first, or 404 NoSuchUpload
#   conditions of a copy, and in a batch   it passes them over
#     of deletions
#   pages of uploads                       it shows all in one
# And ministack:
#   a copy of what came in parts           it keeps the etag, which S3 makes anew
#   parts that are too small               it takes them
# A completion with two things wrong may be told either: what is looked at first is not documented.
# moto looks first whether something is there that it must not replace.
EITHER = [{"ExistsError", "PreconditionError"}, {"ExistsError", "RejectedError"}]

FILES = ["/t/a", "/t/b", "/t/d=1/c", "/u"]
DIRECTORIES = ["/", "/t", "/t/d=1", "/gone"]
DATAS = [b"", b"small", b"1" * SMALLEST, b"2" * SMALLEST]


@dataclass
class Side:
    """One store, and its own names for the uploads."""

    store: MultipartStore
    ids: list[tuple[str, str]] = field(default_factory=list)
    parts: list[dict[int, Part]] = field(default_factory=list)

    async def ask(self, step: tuple[Any, ...]) -> object:
        """Return what is answered, by what both sides can be compared."""
        try:
            return await getattr(self, step[0])(*step[1:])
        except StoreError as error:
            return type(error).__name__

    async def put(self, path: str, data: bytes, overwrite: bool) -> object:
        """Write a file."""
        return said(await self.store.put(path, data, overwrite=overwrite))

    async def delete(self, path: str) -> object:
        """Delete a file."""
        await self.store.delete(path)
        return "deleted"

    async def copy(self, source: str, dest: str) -> object:
        """Copy a file over what is there."""
        await self.store.copy(source, dest, overwrite=True)
        return said(await self.store.head(dest))

    async def head(self, path: str) -> object:
        """Look at a path."""
        return said(await self.store.head(path))

    async def list(self, path: str) -> object:
        """List a directory."""
        page = await self.store.list(path)
        assert page.token is None
        return sorted(map(said, page.entries))

    async def tree(self, path: str) -> object:
        """List everything below a directory."""
        return sorted(map(said, (await self.store.list_tree(path)).entries))

    async def create(self, path: str) -> object:
        """Begin an upload."""
        self.ids.append((path, await self.store.create_upload(path)))
        self.parts.append({})
        return "begun"

    async def part(self, which: int, number: int, data: bytes) -> object:
        """Send a part."""
        made = await self.store.put_part(*self.ids[which], number, data)
        self.parts[which][number] = made
        return made.etag.strip('"')

    async def complete(self, which: int, wrong: str, overwrite: bool, over: str) -> object:
        """Complete an upload, with the parts that were sent or others."""
        etag = await self._etag(self.ids[which][0], over)
        sent = self.parts[which]
        parts = [sent[number] for number in sorted(sent)]
        if wrong == "more":
            parts.append(Part("0" * 32))
        elif wrong == "fewer":
            parts = parts[:-1]
        elif wrong == "turned":
            parts.reverse()
        made = await self.store.complete_upload(
            *self.ids[which], parts, overwrite=overwrite, etag=etag
        )
        return (made.path, made.etag)

    async def _etag(self, path: str, over: str) -> str | None:
        """Return an etag to be replaced: that of what is there, or another."""
        if over != "what is there":
            return "0" * 32 if over else None
        try:
            return (await self.store.head(path)).etag or "1" * 32
        except NotFoundError:
            return "2" * 32

    async def completed(self, which: int) -> object:
        """Look whether an upload has become the file."""
        sent = self.parts[which]
        parts = [sent[number] for number in sorted(sent)]
        info = await self.store.completed(self.ids[which][0], parts)
        return None if info is None else said(info)

    async def abort(self, which: int) -> object:
        """Abort an upload."""
        await self.store.abort_upload(*self.ids[which])
        return "aborted"

    async def uploads(self, path: str) -> object:
        """List uploads."""
        names = {name: number for number, (_, name) in enumerate(self.ids)}
        found = await uploads_below(self.store, path)
        return sorted((one.path, names[one.upload_id]) for one in found)

    async def sent(self, which: int) -> object:
        """List the parts of an upload."""
        found = await parts_of(self.store, *self.ids[which])
        return [(number, part.etag.strip('"'), size) for number, part, size in found]


def said(info: Info) -> tuple[str, str, int, str]:
    """Return what two stores say alike of a path; times are not."""
    return info.path, info.kind.value, info.size, info.etag or ""


class Draw:
    """Draws requests, leaving out what moto is known to do wrong."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.open: list[int] = []
        self.ended: list[int] = []
        self.paths: list[str] = []
        self.numbers: list[set[int]] = []

    def next(self) -> tuple[Any, ...]:
        """Return one request."""
        rng = self.rng
        path = rng.choice(FILES)
        kinds = ["put", "delete", "copy", "head", "list", "tree", "create", "uploads"]
        kind = rng.choice([*kinds, *["part", "part", "complete", "abort", "sent", "completed"] * 2])
        match kind:
            case "put":
                return kind, path, rng.choice(DATAS), rng.random() < 0.7
            case "delete" | "head":
                return kind, path
            case "copy":
                return kind, path, rng.choice([one for one in FILES if one != path])
            case "list" | "tree" | "uploads":
                return kind, rng.choice(DIRECTORIES)
        if kind == "create" or not self.open:
            self.open.append(len(self.paths))
            self.paths.append(path)
            self.numbers.append(set())
            return "create", path
        return self._of_upload(kind)

    def _of_upload(self, kind: str) -> tuple[Any, ...]:
        rng = self.rng
        which = rng.choice(self.open)
        if kind == "part":
            # Those that complete it are numbered without gaps.
            number = rng.randint(1, len(self.numbers[which]) + 1)
            self.numbers[which].add(number)
            return kind, which, number, rng.choice(DATAS)
        if kind == "complete":
            wrong = rng.choice(["", "", "", "more", "fewer", "turned"])
            over = rng.choice(["", "", "what is there", "another"])
            return kind, which, wrong, rng.random() < 0.6, over
        if kind in ("abort", "sent") and self.ended and rng.random() < 0.3:
            return kind, rng.choice(self.ended)
        return kind, which

    def learn(self, step: tuple[Any, ...], answer: object) -> None:
        """Note that an upload is over."""
        over = step[0] == "complete" and isinstance(answer, tuple)
        over = over or answer == "aborted"
        if over and step[1] in self.open:
            self.open.remove(step[1])
            self.ended.append(step[1])


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    """A loop for the connections."""
    with asyncio.Runner() as found:
        yield found


def _is_of_parts(answer: object) -> bool:
    return isinstance(answer, tuple) and "-" in str(answer[3])


async def compare(model: MultipartStore, server: S3Store, seed: int, *, copies: bool) -> int:
    """Ask both sides the same; returns how many of the answers were no.

    ``copies`` says whether the server copies as S3 does what came in parts.
    """
    draw, refused = Draw(random.Random(seed)), 0
    one, other = Side(model), Side(server)
    asked: list[tuple[object, ...]] = []
    for _ in range(STEPS):
        step = draw.next()
        if step[0] == "copy" and _is_of_parts(await one.ask(("head", step[1]))) and not copies:
            continue
        expected, answer = await one.ask(step), await other.ask(step)
        asked.append((step, expected))
        if step[0] != "complete" or {expected, answer} not in EITHER:
            assert answer == expected, asked
        draw.learn(step, expected)
        refused += isinstance(expected, str) and expected.endswith("Error")
    return refused


@pytest.mark.sample(12)
@pytest.mark.parametrize(
    "name, seed",
    [
        *(("moto", seed) for seed in range(SEEDS)),
        *(("ministack", seed) for seed in range(SEEDS, SEEDS + FEWER)),
    ],
)
def test_the_model_answers_as_others_do(
    runner: asyncio.Runner, request: pytest.FixtureRequest, name: str, seed: int
) -> None:
    """Whatever is asked in whatever order: the same etags, sizes, listings and errors."""
    url = request.getfixturevalue(f"{name}_url")
    smallest = SMALLEST if name == "moto" else 0

    async def main() -> int:
        options = {"conditional_delete": "single", "checksum": "none"}
        options["conditional_replace"] = str(name == "ministack")
        server = open_s3(url, new_bucket(url), **options)
        server.traits = replace(server.traits, multipart=Multipart(smallest))
        try:
            model = open_store(UploadRules(smallest_part=smallest))
            return await compare(model, server, seed, copies=name == "moto")
        finally:
            await server.aclose()

    assert runner.run(main()) > 0
