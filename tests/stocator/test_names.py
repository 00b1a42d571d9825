"""Names of objects as Stocator gave them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import UrlError
from asynccommit.stocator.names import attempt_of, direct_path, is_attempt, united

TASK = "/out/_temporary/0/_temporary/attempt_201512062056_0000_m_000007_1"
ID = "attempt_201512062056_0000_m_000007_1"

stems = st.text("ab=_ é", min_size=1, max_size=6).map(lambda text: f"part-{text}")
extensions = st.lists(st.text("ab-_", max_size=4), max_size=3).map(
    lambda names: "".join(f".{name}" for name in names)
)
ids = st.from_regex(r"attempt_[0-9]{12}_[0-9]{4}_m_[0-9]{6}_[0-9]", fullmatch=True)


@pytest.mark.parametrize(
    "path,name",
    [
        (f"{TASK}/part-7", f"/out/part-7-{ID}"),
        (f"{TASK}/part-7.snappy.parquet", f"/out/part-7-{ID}.snappy.parquet"),
        (f"{TASK}/p=1.5/part-7.csv", f"/out/p=1.5/part-7-{ID}.csv"),
        (f"{TASK}/.hidden", f"/out/-{ID}.hidden"),
        (f"{TASK}/_SUCCESS", "/out/_SUCCESS"),
        (f"{TASK}/attempt_9.csv", "/out/attempt_9.csv"),
        (f"{TASK[1:]}/part-7.csv", f"out/part-7-{ID}.csv"),
        (f"{TASK[4:]}/part-7.csv", f"/part-7-{ID}.csv"),
        (f"{TASK[5:]}/part-7.csv", f"part-7-{ID}.csv"),
        (f"/my{TASK[5:]}/part-7.csv", f"/my{TASK[5:]}/part-7.csv"),
        ("/out/part-7.csv", "/out/part-7.csv"),
        ("/out/_temporary/0/task_1/part-7", "/out/_temporary/0/task_1/part-7"),
        ("/out/_SUCCESS", "/out/_SUCCESS"),
    ],
)
def test_direct_path(path: str, name: str) -> None:
    """The attempt goes before the first dot of the name; what is no task's stays where it is."""
    assert direct_path(path) == name


@pytest.mark.parametrize("path", [TASK, f"{TASK}/", f"{TASK}/p=1/"])
def test_direct_path_of_no_file(path: str) -> None:
    """The directory of an attempt is no object."""
    with pytest.raises(UrlError, match="does not name a file of the task attempt"):
        direct_path(path)


@given(stems, extensions, ids)
def test_a_name_and_back(stem: str, extension: str, attempt: str) -> None:
    """Of the name of an object, the file and the attempt can be told."""
    path = f"/t/p=1/{stem}{extension}"
    made = direct_path(f"/t/_temporary/0/_temporary/{attempt}/p=1/{stem}{extension}")

    assert (united(made), attempt_of(made)) == (path, attempt)
    assert is_attempt(made)


@pytest.mark.parametrize(
    "path,attempt,shared",
    [
        (f"/t/part-7-{ID}.csv", True, "/t/part-7.csv"),
        (f"/t/part-7-{ID}", True, "/t/part-7"),
        (f"/t/part-7-u-c000-{ID}.a.b", True, "/t/part-7-u-c000.a.b"),
        ("/t/part-7.csv", False, "/t/part-7.csv"),
        (f"/t/x-{ID}.csv", False, f"/t/x-{ID}.csv"),
        (f"/t/part-1-{ID}/x.csv", False, f"/t/part-1-{ID}/x.csv"),
        ("/t/attempt_1-part-7", True, "/t/attempt_1-part-7"),
        ("/t/_SUCCESS", False, "/t/_SUCCESS"),
    ],
)
def test_united(path: str, attempt: bool, shared: str) -> None:
    """Attempts of one file share the name without the attempt; other objects have their own."""
    assert (is_attempt(path), united(path)) == (attempt, shared)
