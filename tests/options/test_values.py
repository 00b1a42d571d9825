"""Values of options are read as Hadoop reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from asynccommit import engine, open_job, open_store
from asynccommit.errors import OptionError
from asynccommit.options import values
from asynccommit.options.checked import located


@pytest.mark.parametrize(
    "text, expected",
    [
        ("1", 1),
        (" 64M ", 64 << 20),
        ("64m", 64 << 20),
        ("2K", 2048),
        ("1g", 1 << 30),
        ("5MB", 5 << 20),
    ],
)
def test_sizes(text: str, expected: int) -> None:
    """Units of sizes are powers of 1024, in either case."""
    assert values.size("key", text) == expected


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5M", "M", "9999999P", "64 M M"])
def test_no_sizes(text: str) -> None:
    """What is no size, or none that a file can have, is refused with the key."""
    with pytest.raises(OptionError, match="key is"):
        values.size("key", text)


@pytest.mark.parametrize("text, expected", [("0", 1), ("1", 1), (" 9 ", 9)])
def test_threads(text: str, expected: int) -> None:
    """No threads are one, for there is always the caller's."""
    assert values.threads("key", text) == expected


@pytest.mark.parametrize("text", ["/a/b", "file:/a", "abfs://c@a/x", "s3a://b/x", "x:y", ""])
def test_a_url_or_absolute_path_stays(text: str) -> None:
    """A location that is already absolute, or has a scheme, stays as it was typed."""
    assert located(text) == text


@pytest.mark.parametrize("text", ["out", "./out", "../out", "a/b:c"])
def test_a_relative_path_is_from_here(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path without a scheme is one from the working directory, as Hadoop reads it."""
    monkeypatch.chdir(tmp_path)

    assert located(text) == f"{tmp_path}/{text}"


async def test_a_job_and_a_store_take_relative_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job and a store are opened at a relative path, which may lead upward."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    async with open_job("../out") as job, job.task(0) as task:
        await task.put("part", b"x")
    async with open_store(Path("../out")) as store:
        await engine.move_tree(store, tmp_path / "out/part", tmp_path / "out/moved")

    assert job.report.dest == f"file:{tmp_path}/out"
    assert (tmp_path / "out/moved").read_bytes() == b"x"
