"""The job commits that are measured: ours, Hadoop's, and bare loops."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import orjson

from asynccommit import sync
from asynccommit.results import JobReport
from bench import trees
from tests.support.hadoop import Hadoop, HadoopJob

HADOOP_THREADS = 32


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to make a job's files visible.

    Attributes:
        name: in tables and results.
        arrange: makes the tree that a run starts from, of a pool, for a destination.
        prepare: returns the function that is timed.
        committed: it leaves ``_SUCCESS`` and no ``_temporary``.
    """

    name: str
    arrange: Callable[[str, str, trees.Shape], None]
    prepare: Callable[[str, trees.Shape], Callable[[], object]]
    committed: bool = True


def ours(reports: list[JobReport]) -> Contender:
    """The blocking facade with every default, as the driver of a Spark job calls it.

    Load to cleanup; its reports go to ``reports``.
    """

    def prepare(dest: str, shape: trees.Shape) -> Callable[[], object]:
        tasks = trees.messages(dest, shape)

        def run() -> None:
            report = sync.job(dest, trees.JOB_ID).commit(tasks)
            assert report.files == shape.total
            reports.append(report)

        return run

    return Contender("ours", trees.arrange_manifest_job, prepare)


def ours_trusting() -> Contender:
    """The same without the tasks' messages, as on the command line: more is looked at then."""

    def prepare(dest: str, shape: trees.Shape) -> Callable[[], object]:
        def run() -> None:
            report = sync.job(dest, trees.JOB_ID).commit()
            assert report.files == shape.total

        return run

    return Contender("ours_trusting", trees.arrange_manifest_job, prepare)


def ours_v1() -> Contender:
    """Our FileOutputCommitter, version 1, with every default: load to cleanup."""

    def prepare(dest: str, shape: trees.Shape) -> Callable[[], object]:
        def run() -> None:
            report = sync.job(dest, trees.CLASSIC_ID, committer="file_v1").commit()
            assert report.files == shape.total

        return run

    return Contender("ours_v1", trees.arrange_classic_job, prepare)


def hadoop_manifest(hadoop: Hadoop) -> Contender:
    """Hadoop's ManifestCommitter: load to cleanup."""
    conf = {"mapreduce.manifest.committer.io.threads": str(HADOOP_THREADS)}

    def prepare(dest: str, _shape: trees.Shape) -> Callable[[], object]:
        return _commit(hadoop.job(Path(dest), trees.JOB_ID, conf=conf))

    return Contender("hadoop_manifest", trees.arrange_manifest_job, prepare)


def hadoop_v1(hadoop: Hadoop) -> Contender:
    """Hadoop's FileOutputCommitter, algorithm 1."""

    def prepare(dest: str, _shape: trees.Shape) -> Callable[[], object]:
        return _commit(hadoop.job(Path(dest), trees.JOB_ID, committer="v1"))

    return Contender("hadoop_v1", trees.arrange_classic_job, prepare)


def _commit(job: HadoopJob) -> Callable[[], object]:
    committer, context = job.committer, job.context()

    def run() -> None:
        committer.commitJob(context)

    return run


def rename_loop() -> Contender:
    """``os.rename`` in a loop over paths that are known already: nothing can be quicker."""

    def prepare(dest: str, shape: trees.Shape) -> Callable[[], object]:
        pairs = list(_pairs(dest, shape))

        def run() -> None:
            _make_partitions(dest, shape)
            for source, target in pairs:
                os.rename(source, target)

        return run

    return Contender("rename_loop", trees.arrange_manifest_job, prepare, committed=False)


def bare_calls() -> Contender:
    """The system calls that no committer can do without which renames file by file.

    One after the other in plain Python, over paths that are known already: the rename loop, one
    listing with sizes of each destination directory, and the removal of the job's directory.
    """

    def prepare(dest: str, shape: trees.Shape) -> Callable[[], object]:
        pairs = list(_pairs(dest, shape))
        rest = _rest(dest, shape, pairs)

        def run() -> None:
            _make_partitions(dest, shape)
            for source, target in pairs:
                os.rename(source, target)
            rest()

        return run

    return Contender("bare_calls", trees.arrange_manifest_job, prepare, committed=False)


def bare_guarded() -> Contender:
    """``bare_calls``, and the least that finding and guarding the files takes besides.

    Each manifest is read and parsed and its URLs are decoded, each file is looked at just before
    its rename, and the list of files is written durably before the first.
    """

    def prepare(dest: str, shape: trees.Shape) -> Callable[[], object]:
        rest = _rest(dest, shape, list(_pairs(dest, shape)))
        folder = f"{dest}/_temporary/{trees.JOB_ID}/00/manifests"

        def run() -> None:
            pairs = []
            for name in os.listdir(folder):
                said = orjson.loads(Path(folder, name).read_bytes())
                pairs += [(_path(row["s"]), _path(row["d"]), row["z"]) for row in said["files"]]
            _make_partitions(dest, shape)
            with open(f"{dest}/_temporary/plan", "wb") as plan:
                plan.write(orjson.dumps(pairs))
                plan.flush()
                os.fsync(plan.fileno())
            for source, target, size in pairs:
                assert os.lstat(source).st_size == size
                os.rename(source, target)
            os.unlink(f"{dest}/_temporary/plan")
            rest()

        return run

    return Contender("bare_guarded", trees.arrange_manifest_job, prepare, committed=False)


def _path(url: str) -> str:
    return unquote("/" + url.removeprefix("file:").lstrip("/"))


def _rest(dest: str, shape: trees.Shape, pairs: list[tuple[str, str]]) -> Callable[[], None]:
    """Return what checks the table and removes the job's directory."""
    partitions = [f"{dest}/{shape.partition(n)}" for n in range(shape.partitions)]
    files, directories = _leftovers(f"{dest}/_temporary", {source for source, _ in pairs})

    def run() -> None:
        for path in partitions:
            with os.scandir(path) as entries:
                assert all(entry.stat(follow_symlinks=False).st_size for entry in entries)
        for path in files:
            os.unlink(path)
        for path in directories:
            os.rmdir(path)

    return run


def _leftovers(root: str, renamed: set[str]) -> tuple[list[str], list[str]]:
    """Return the files below ``root`` that are not renamed, and all directories, bottom up."""
    files: list[str] = []
    directories: list[str] = []
    for folder, _folders, names in os.walk(root, topdown=False):
        directories.append(folder)
        files += [path for name in names if (path := f"{folder}/{name}") not in renamed]
    return files, directories


def rename_executor() -> Contender:
    """``run_in_executor`` for each rename, 64 at a time: asyncio's usual way with files."""

    def prepare(dest: str, shape: trees.Shape) -> Callable[[], object]:
        pairs = list(_pairs(dest, shape))

        async def worker(executor: ThreadPoolExecutor, items: Iterator[tuple[str, str]]) -> None:
            loop = asyncio.get_running_loop()
            for source, target in items:
                await loop.run_in_executor(executor, os.rename, source, target)

        async def run() -> None:
            _make_partitions(dest, shape)
            items = iter(pairs)
            with ThreadPoolExecutor(HADOOP_THREADS) as executor:
                await asyncio.gather(*(worker(executor, items) for _ in range(64)))

        return lambda: asyncio.run(run())

    return Contender("rename_executor", trees.arrange_manifest_job, prepare, committed=False)


def _pairs(dest: str, shape: trees.Shape) -> Iterator[tuple[str, str]]:
    for task in range(shape.tasks):
        work = trees.work_dir(dest, task)
        for name in shape.names(task):
            yield f"{work}/{name}", f"{dest}/{name}"


def _make_partitions(dest: str, shape: trees.Shape) -> None:
    for number in range(shape.partitions):
        os.mkdir(f"{dest}/{shape.partition(number)}")
