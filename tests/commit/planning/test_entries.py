"""What a manifest lists, as paths of the store."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.planning.entries import decode_entries
from asynccommit.commit.spill import Entry
from asynccommit.errors import UrlError
from asynccommit.formats.manifest import DirEntry, FileEntry, TaskManifest
from asynccommit.stores.urls import Address

LAYOUT = Layout(Address("file", "", "/t able"), "job_1")
ATTEMPT = "attempt_1_0001_m_000000_0"
WORK = LAYOUT.task_attempt_dir(ATTEMPT)
FROM, TO = "file:///t%20able" + WORK.removeprefix("/t able"), "file:/t%20able"
LONG = "x" * 300


def manifest(files: Sequence[FileEntry], *directories: str) -> TaskManifest:
    """Return a manifest of these files."""
    made = [DirEntry(path, 1, 1) for path in directories]
    where = FROM.replace("///", "/")
    return TaskManifest("job_1", 0, "task_1_0001_m_000000", ATTEMPT, where, files, made)


def test_paths_are_decoded_in_order() -> None:
    """Plain and encoded names, of either form of a local URI, are what they say."""
    files = [
        FileEntry(f"{FROM}/a=1/f-0", f"{TO}/a=1/f-0", 1, "e"),
        FileEntry(f"{FROM}/a=1/f-1", f"{TO}/a=1/f-1", 2),
        FileEntry(f"{FROM}/a=%20/f", f"{TO}/a=%20/f", 3),
        FileEntry(f"{FROM}/x", f"{TO}/y", 4),
        FileEntry(f"{FROM.replace('///', '/')}/b", f"{TO.replace('/', '///', 1)}/b", 5),
    ]
    entries, directories = decode_entries(LAYOUT, manifest(files, f"{TO}/a=1", f"{TO}/a=%20", ""))

    assert entries == [
        Entry(f"{WORK}/a=1/f-0", "/t able/a=1/f-0", 1, "e"),
        Entry(f"{WORK}/a=1/f-1", "/t able/a=1/f-1", 2, None),
        Entry(f"{WORK}/a= /f", "/t able/a= /f", 3, None),
        Entry(f"{WORK}/x", "/t able/y", 4, None),
        Entry(f"{WORK}/b", "/t able/b", 5, None),
    ]
    assert [type(entry) for entry in entries] == [Entry] * 5
    assert directories == ["/t able/a=1", "/t able/a= "]


@pytest.mark.parametrize("first", [[], [FileEntry(f"{FROM}/f", f"{TO}/f", 1)]])
@pytest.mark.parametrize(
    "source, dest, problem",
    [
        (f"{FROM}/f", f"{TO}/{LONG}", "a name longer than 255 bytes"),
        (f"{FROM}/%20", f"{TO}/%20{LONG}", "a name longer than 255 bytes"),
        (f"{FROM}/..", f"{TO}/..", "segment"),
        (f"{FROM}/%2e%2e/f", f"{TO}/%2e%2e/f", "segment"),
        (f"{FROM}x/f", f"{TO}/f", "is not below"),
        (f"{FROM}/f", "file:/t%20ablex/f", "is not below"),
        (f"{FROM}/f", "s3a://t/f", "not in the same store"),
        (f"{FROM}/_SUCCESS", f"{TO}/_SUCCESS", "tasks may not write"),
        (f"{FROM}/_temporary/f", f"{TO}/_temporary/f", "tasks may not write"),
    ],
)
def test_what_is_refused(first: list[FileEntry], source: str, dest: str, problem: str) -> None:
    """A place outside, one that is not the tasks', and a name that no file has, wherever listed."""
    with pytest.raises(UrlError, match=problem):
        decode_entries(LAYOUT, manifest([*first, FileEntry(source, dest, 1)]))


def test_a_long_name_that_the_file_has_already() -> None:
    """What the task's directory took, the destination takes too."""
    files = [FileEntry(f"{FROM}/{name}", f"{TO}/{name}", 1) for name in ("f", LONG, f"%20{LONG}")]
    entries, _ = decode_entries(LAYOUT, manifest(files))

    assert [entry.dest for entry in entries] == ["/t able/f", f"/t able/{LONG}", f"/t able/ {LONG}"]


def test_another_spelling_of_the_destination() -> None:
    """A job that was written by another scheme of the same account names the URL to use."""
    layout = Layout(Address("abfs", "data@LAKE.dfs.core.windows.net", "/t"), "job_1")
    where = f"abfss://data@lake.dfs.core.windows.net{layout.task_attempt_dir(ATTEMPT)}"
    with pytest.raises(UrlError, match=r"written to abfss://data@lake\S*/t: use that URL"):
        decode_entries(layout, TaskManifest("job_1", 0, "task_1", ATTEMPT, where))


def test_another_attempts_directory() -> None:
    """A manifest of another directory than its attempt's is refused."""
    other = TaskManifest("job_1", 0, "task_1", ATTEMPT, "file:/t%20able/elsewhere")
    with pytest.raises(UrlError, match="taskAttemptDir file:/t%20able/elsewhere is not"):
        decode_entries(LAYOUT, other)
