"""Sink logs for programs on asyncio."""

from __future__ import annotations

from pathlib import Path

import pytest

from asynccommit.errors import NotFoundError, OptionError, UnsupportedError, UrlError
from asynccommit.streaming.api import Added, SinkLogSettings, open_sink_log


async def test_a_batch(tmp_path: Path) -> None:
    """A file that is there is added by its name, and seen by who opens the log next."""
    (tmp_path / "day=a%20b").mkdir()
    (tmp_path / "day=a%20b" / "part 0").write_bytes(b"12345")
    async with open_sink_log(tmp_path, SinkLogSettings(interval=1)) as log:
        file = await log.entry("day=a%20b/part 0")
        assert await log.add(0, [file], query="q") is Added.NEW
        assert (file.size, file.modified > 1_700_000_000_000) == (5, True)
        assert file.path == f"file://{tmp_path}/day=a%2520b/part%200"
    async with open_sink_log(str(tmp_path)) as log:
        assert await log.files() == [file]
    assert (tmp_path / "_spark_metadata" / "0.compact").exists()


@pytest.mark.parametrize(
    "name,kind",
    [("nothing", NotFoundError), ("../x", UrlError), ("a//b", UrlError), ("", UrlError)],
)
async def test_a_file_that_is_none(tmp_path: Path, name: str, kind: type[Exception]) -> None:
    """A name of no file, or of one outside of the table, has no entry."""
    async with open_sink_log(tmp_path) as log:
        with pytest.raises(kind):
            await log.entry(name)


async def test_a_directory_is_no_file(tmp_path: Path) -> None:
    """A directory has an entry that no batch takes."""
    (tmp_path / "d").mkdir()
    async with open_sink_log(tmp_path) as log:
        with pytest.raises(OptionError, match="not a file that can be added"):
            await log.add(0, [await log.entry("d")])


@pytest.mark.parametrize("url,kind", [("", UrlError), ("wasb://c@a/t", UnsupportedError)])
async def test_a_place_that_is_none(url: str, kind: type[Exception]) -> None:
    """A place without a store is refused when it is opened."""
    with pytest.raises(kind):
        async with open_sink_log(url):
            pass
