"""The figures of the page of committers are those of the committers."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from asynccommit.commit.registry import COMMITTERS, Committer
from asynccommit.commit.unsupported_committers import REFUSED
from asynccommit.stores.policies.funnel import Call, Op
from tests.support.uploads import ATTEMPT, TASK, new_bucket, open_committer

PAGE = (Path(__file__).parents[2] / "docs/committers.md").read_text("utf-8")
FIGURES = PAGE.partition("## How many requests")[2].partition("\n## ")[0]
PART = 8


class Counting:
    """Counts requests by what they are."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()

    def around(self, call: Call) -> Call:
        """Return the call that is counted."""

        async def counted(op: Op) -> Any:
            self.count[op.name] += 1
            return await call(op)

        return counted

    def take(self) -> int:
        """Return how many there were since it was asked last."""
        found = self.count.total()
        self.count.clear()
        return found


async def requests(folder: Path, name: str, files: int, parts: int, **uploads: Any) -> list[int]:
    """Return the requests of a job's only task, of its commit, and of the job's commit."""
    counting = Counting()
    conf = {"fs.s3a.buffer.dir": str(folder)}
    made = open_committer(new_bucket(), name, counting, conf=conf, part_size=PART, **uploads)
    await made.setup_job()
    counting.take()
    await write(made, files, bytes(PART * parts))
    found = [counting.take()]
    commit = await made.commit_task(TASK, ATTEMPT)
    found.append(counting.take())
    await made.commit_job([commit])
    return [*found, counting.take()]


async def write(made: Committer, files: int, data: bytes) -> None:
    """Have the task write files, one after another."""
    await made.setup_task(ATTEMPT)
    work = made.work(ATTEMPT)
    for number in range(files):
        async with await work.open(f"file-{number}") as file:
            await file.write(data)


ROWS = [
    ("`magic`", "magic", {}),
    ("`magic`, tracked in memory", "magic", {"in_memory": True}),
    ("`directory`, `partitioned`", "directory", {}),
    ("`directory`, `partitioned`", "partitioned", {}),
]


@pytest.mark.parametrize("row,name,uploads", ROWS)
@pytest.mark.parametrize("parts", [1, 3])
async def test_requests_of_a_file(
    tmp_path: Path, row: str, name: str, uploads: dict[str, Any], parts: int
) -> None:
    """A file costs as many requests as the page says, in each of the three places."""
    few = await requests(tmp_path, name, 10, parts, **uploads)
    many = await requests(tmp_path, name, 30, parts, **uploads)
    found = [(b - a) / 20 for a, b in zip(few, many, strict=True)]
    [line] = re.findall(rf"^\| {re.escape(row)} \| (.*) \|$", FIGURES, re.MULTILINE)
    said = [parts * ("P" in cell) + int(re.findall(r"\d+", cell)[0]) for cell in line.split("|")]

    assert found == said[:3]
    assert sum(found) == said[3]


def test_every_committer_is_on_the_page() -> None:
    """Each committer has a place on the page, and each that is refused."""
    assert {name for name in [*COMMITTERS, *REFUSED] if f"`{name}`" not in PAGE} == set()
