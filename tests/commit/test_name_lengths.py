"""Names that are too long: told as the user gave them, before anything is written."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from asynccommit import RejectedError, arrow, duckdb, sync
from asynccommit.commit.layouts.layout import STAGED
from asynccommit.commit.name_lengths import too_long
from asynccommit.commit.tasks.output import StoreWork
from asynccommit.stores.hdfs.store import HdfsStore
from asynccommit.stores.urls import parse_url
from asynccommit.testing.models.hdfs.client import SimHdfsClient
from asynccommit.testing.models.hdfs.namenode import HdfsNameNode
from asynccommit.testing.pytest_plugin import adls_emulator_thread, gcs_emulator_thread
from tests.support.engine_places import Place, place
from tests.support.jobs import visible
from tests.support.s3_servers import moto_url

__all__ = ["adls_emulator_thread", "gcs_emulator_thread", "moto_url", "place"]

PARTS = "/".join(["n" * 109] * 9)
"""A path of 989 letters, which each store accepts, but not with the directory of a task."""


def told(error: BaseException) -> str:
    """Return the text of an error, which has no name that the user did not give."""
    text = str(error)
    for staged in ("_temporary", "__magic", "asynccommit-staged"):
        assert staged not in text
    return text


def test_names_up_to_the_limit_of_a_disk(tmp_path: Path) -> None:
    """The suffix until the commit counts, where there is one."""
    with sync.open_job(tmp_path / "out") as job, job.task(0) as task:
        longest = "x" * 255
        Path(task.path(longest)).write_text("1")
        room = 255 - len(task.staging_suffix)
        Path(task.path("y" * room + task.staging_suffix)).write_text("2")
        with pytest.raises(RejectedError, match=r"has 256 bytes and may have 255\. Choose"):
            task.path("é" * 128)
        with pytest.raises(RejectedError, match=f"has 240 bytes and may have {room} of the"):
            task.path("p=1/" + "z" * 240 + task.staging_suffix)

    assert visible(tmp_path / "out") == {longest: "1", "y" * room: "2"}


def test_a_long_name_that_another_library_was_given(tmp_path: Path) -> None:
    """Its error, which shows the name until the commit, is the cause."""
    opened = sync.open_job(tmp_path / "out")
    refused = pytest.raises(RejectedError, match="has 240 bytes")
    with refused as caught, opened as job, job.task(0) as task:
        Path(f"{task.directory}/{'x' * 240}{task.staging_suffix}").write_text("1")

    assert isinstance(caught.value.__cause__, OSError)
    told(caught.value)


def test_errors_that_are_about_something_else(tmp_path: Path) -> None:
    """They stay what they are."""

    class SpeechlessError(Exception):
        """An exception without a text."""

        def __str__(self) -> str:
            raise RuntimeError("no words")

    for error in (
        SpeechlessError(),
        OSError("no route"),
        OSError(36, "File name too long", "/elsewhere"),
        OSError(36, "File name too long", f"{tmp_path}/short"),
    ):
        assert too_long(error, str(tmp_path), "") is None


@pytest.mark.parametrize("engine", ["arrow", "duckdb"])
def test_a_long_partition_value(tmp_path: Path, engine: str) -> None:
    """The name of its directory is told, and nothing is left."""
    table = pa.table({"v": [1], "p": ["a" * 300]})
    with pytest.raises(
        Exception, match=r"'p=a+\.\.\.' is too long: it has 302 bytes and may have 255"
    ) as caught:
        if engine == "arrow":
            arrow.write_dataset(table, tmp_path / "out", partitioning=["p"])
        else:
            connection = __import__("duckdb").connect()
            connection.register("t", table)
            duckdb.copy(connection, "SELECT * FROM t", tmp_path / "out", partition_by=["p"])

    told(caught.value)
    assert not list((tmp_path / "out").rglob("*")) if (tmp_path / "out").exists() else True


@pytest.mark.rotate("place")
@pytest.mark.parametrize("how", ["put", "open"])
def test_a_path_that_is_too_long_with_the_directory_of_a_task(place: Place, how: str) -> None:
    """The error has the length that is allowed below this destination, which is accepted."""
    url, storage = place
    if url.startswith("s3:"):
        url += "/" + "d" * 60
    with sync.open_job(url, storage_options=storage) as job, job.task(0) as task:
        write = task.put if how == "put" else lambda name, data: task.open(name)
        with pytest.raises(RejectedError, match=r"it has 989 .*it may have [\d,]+") as caught:
            write(PARTS, b"x")
        told(caught.value)


async def test_a_name_that_only_the_store_can_refuse() -> None:
    """HDFS has a limit of its own: its refusal is told with the name that was given."""
    client = SimHdfsClient(HdfsNameNode(lambda: 1.0), {})
    store = HdfsStore(parse_url("hdfs://sim"), environ={}, client=client)
    work = StoreWork(store, parse_url("hdfs://sim/t"), "/t/_temporary/task", staged=STAGED)
    with pytest.raises(RejectedError, match="The path has 250 characters, and 288 in") as caught:
        await work.put("n" * 250 + STAGED, b"x")

    assert caught.value.path == "n" * 250
