"""The job commits that are measured on HDFS: ours in two ways, and Hadoop's committers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from asynccommit import sync
from asynccommit.spark.hadoop_store.opening import facts_of
from asynccommit.spark.hadoop_store.store import HadoopStore
from asynccommit.stores.elsewhere import STORE_OPTION, provide
from bench import trees
from bench.hdfs.account import DEST, Account, Where
from tests.support.hadoop import JOB_UUID, Hadoop

HADOOP_THREADS = 32
_LIB = "org.apache.hadoop.mapreduce.lib.output"
_API = "org.apache.hadoop.mapreduce"
_MANIFEST = "committer.manifest.ManifestCommitterFactory"


@dataclass(frozen=True, slots=True)
class HdfsContender:
    """One way to make a job's files visible.

    Attributes:
        name: of the row.
        where: the directory in which a task has left its files.
        prepare: returns the function that is timed.
        committed: it leaves ``_SUCCESS``.
    """

    name: str
    where: Where
    prepare: Callable[[], Callable[[], object]]
    committed: bool = True


def contenders(account: Account, driver: Hadoop) -> list[HdfsContender]:
    """Return all of them.

    Args:
        account: the job.
        driver: a JVM with Hadoop's client, for what runs in one.
    """
    open_through(driver, account.url)
    work = trees.work_dir
    return [
        HdfsContender("ours_native", work, lambda: _ours(account, {})),
        HdfsContender("ours_jvm", work, lambda: _ours(account, {STORE_OPTION: "jvm"})),
        HdfsContender("hadoop_manifest", work, lambda: _manifest(account, driver)),
        HdfsContender("hadoop_v1", trees.committed_dir, lambda: _classic(account, driver, "1")),
        HdfsContender("hadoop_v2", _attempt_dir, lambda: _classic(account, driver, "2")),
        HdfsContender("bare_renames", work, lambda: _bare(account), committed=False),
    ]


def open_through(driver: Hadoop, url: str) -> None:
    """Have ``asynccommit.store=jvm`` use this JVM."""
    files = driver.new("org.asynccommit.spark.Filesystems")
    with driver.errors():
        files.open(f"{url}/", driver.configuration())
        facts = facts_of(files, url)
    provide("jvm", lambda _address, _options: HadoopStore(lambda: files.calls(url), facts))


def _ours(account: Account, storage: Mapping[str, str]) -> Callable[[], object]:
    tasks = account.manifests()

    def run() -> None:
        report = sync.job(f"{account.url}{DEST}", trees.JOB_ID, storage_options=storage).commit(
            tasks
        )
        assert report.files == account.shape.total

    return run


def _manifest(account: Account, driver: Hadoop) -> Callable[[], object]:
    account.manifests()
    conf = {
        JOB_UUID: trees.JOB_ID,
        "mapreduce.manifest.committer.io.threads": str(HADOOP_THREADS),
        "mapreduce.outputcommitter.factory.class": f"{_LIB}.{_MANIFEST}",
    }
    committer, job = _committer(account, driver, conf, 0)
    return lambda: committer.commitJob(job)


def _classic(account: Account, driver: Hadoop, version: str) -> Callable[[], object]:
    """Return the job commit of version 1, and with 2 the task commits before it."""
    conf = {"mapreduce.fileoutputcommitter.algorithm.version": version}
    committer, job = _committer(account, driver, conf, 0)
    tasks = [_context(driver, conf, task) for task in range(account.shape.tasks)]

    def run() -> None:
        if version == "2":
            for task in tasks:
                committer.commitTask(task)
        committer.commitJob(job)

    return run


def _bare(account: Account) -> Callable[[], object]:
    """Return the renames alone, by 64 threads over paths that are known already."""
    pairs = [
        (f"{trees.work_dir(DEST, task)}/{name}", f"{DEST}/{name}")
        for task in range(account.shape.tasks)
        for name in account.shape.names(task)
    ]
    account.make_partitions()
    return lambda: account.move(iter(pairs))


def _attempt_dir(dest: str, task: int) -> str:
    """Return where a task attempt of FileOutputCommitter writes."""
    return f"{dest}/_temporary/0/_temporary/{trees.attempt_id(task)}"


def _committer(
    account: Account, driver: Hadoop, conf: Mapping[str, str], task: int
) -> tuple[Any, Any]:
    context = _context(driver, conf, task)
    path = driver.new("org.apache.hadoop.fs.Path", f"{account.url}{DEST}")
    with driver.errors():
        made = driver.java(f"{_LIB}.PathOutputCommitterFactory").createCommitter(path, context)
    job_id = context.getTaskAttemptID().getJobID()
    job = driver.new(f"{_API}.task.JobContextImpl", context.getConfiguration(), job_id)
    return made, job


def _context(driver: Hadoop, conf: Mapping[str, str], task: int) -> Any:
    attempt = driver.java(f"{_API}.TaskAttemptID").forName(trees.attempt_id(task))
    return driver.new(f"{_API}.task.TaskAttemptContextImpl", driver.configuration(conf), attempt)
