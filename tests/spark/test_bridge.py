"""The Python end of the bridge, without a JVM."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from asynccommit import sync
from asynccommit.errors import CommitError, UnsupportedError
from asynccommit.results import JobReport
from asynccommit.spark import bridge, heartbeat
from asynccommit.spark.bridge import Bridge
from asynccommit.spark.jars import build_id
from asynccommit.testing.emulators.adls.emulator import AdlsEmulator
from asynccommit.testing.emulators.gcs.emulator import GcsEmulator, running_gcs_emulator


def request(dest: Path, job_id: str = "job-1", **more: Any) -> str:
    """Return a request of the JVM, for a job without tasks unless said."""
    base = {
        "version": 1,
        "build": build_id(),
        "dest": f"file:{dest}",
        "jobId": job_id,
        "attempt": 0,
    }
    return json.dumps({**base, "tasks": [], "overwrite": [], "conf": {}, **more})


def set_up(dest: Path, job_id: str = "job-1") -> list[dict[str, Any]]:
    """Set up a job with one committed task and return the task's message."""
    (dest / "_temporary" / job_id / "00" / "manifests").mkdir(parents=True)
    with sync.job(dest, job_id).task(0) as task:
        Path(task.path("p=1/part-0.txt")).write_text("one")
    assert task.commit is not None
    return [task.commit.to_json()]


def test_apply_commits(tmp_path: Path) -> None:
    """The job is committed, and the answer and the report count its files."""
    bridge = Bridge()
    reply = json.loads(bridge.apply(request(tmp_path, tasks=set_up(tmp_path))))

    assert reply == {"ok": True, "files": 1, "bytes": 3}
    assert (tmp_path / "p=1" / "part-0.txt").read_text() == "one"
    assert [report.job_id for report in bridge.reports] == ["job-1"]


def test_apply_replaces_what_is_to_be_overwritten(tmp_path: Path) -> None:
    """Directories to overwrite come as URIs and are replaced in the commit."""
    (tmp_path / "p=1").mkdir()
    (tmp_path / "p=1" / "old.txt").write_text("old")
    tasks = set_up(tmp_path)
    reply = Bridge().apply(request(tmp_path, tasks=tasks, overwrite=[f"file:{tmp_path}/p=1"]))

    assert json.loads(reply)["ok"]
    assert [path.name for path in (tmp_path / "p=1").iterdir()] == ["part-0.txt"]


def test_apply_replaces_the_table(tmp_path: Path) -> None:
    """The destination itself to be overwritten is the whole table."""
    (tmp_path / "p=2").mkdir()
    (tmp_path / "p=2" / "old.txt").write_text("old")
    tasks = set_up(tmp_path)
    reply = Bridge().apply(request(tmp_path, tasks=tasks, overwrite=[f"file:{tmp_path}"]))

    assert json.loads(reply)["ok"]
    assert sorted(path.name for path in tmp_path.rglob("*.txt")) == ["part-0.txt"]


def test_apply_replaces_the_partitions_that_are_written(tmp_path: Path) -> None:
    """A dynamic overwrite replaces the directories that files go to, and no other."""
    for name in ("p=1", "p=2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "old.txt").write_text("old")
    tasks = set_up(tmp_path)
    reply = Bridge().apply(request(tmp_path, tasks=tasks, dynamic=True))

    assert json.loads(reply)["ok"]
    assert [path.name for path in (tmp_path / "p=1").iterdir()] == ["part-0.txt"]
    assert [path.name for path in (tmp_path / "p=2").iterdir()] == ["old.txt"]


def test_a_rollback_removes_the_destination_that_the_job_made(tmp_path: Path) -> None:
    """The JVM has made it, so the JVM says so."""
    table = tmp_path / "t"
    tasks = set_up(table)
    task = table / "_temporary/job-1/00/tasks" / tasks[0]["attemptId"] / "p=1/part-0.txt"
    broken = Bridge(lambda what: task.unlink() or bridge.commit(what))
    conf = {"spark.asynccommit.on.failure": "rollback"}
    reply = json.loads(broken.apply(request(table, tasks=tasks, conf=conf, madeDestination=True)))

    assert not reply["ok"]
    assert "it was rolled back" in reply["error"]
    assert not table.exists()


def test_apply_answers_a_repeated_request_with_the_first_answer(tmp_path: Path) -> None:
    """A request that comes again does not commit again."""
    calls: list[str] = []

    def commit(what: Mapping[str, Any]) -> JobReport:
        calls.append(what["jobId"])
        return JobReport(what["jobId"], what["dest"], files=1)

    bridge = Bridge(commit)
    replies = [bridge.apply(request(tmp_path)) for _ in range(3)]

    assert calls == ["job-1"]
    assert len(set(replies)) == 1


def test_apply_joins_a_commit_under_way(tmp_path: Path) -> None:
    """The same request from a second thread waits for the first one's answer."""
    begun, may_end = threading.Event(), threading.Event()

    def commit(what: Mapping[str, Any]) -> JobReport:
        begun.set()
        may_end.wait(10)
        return JobReport(what["jobId"], what["dest"])

    bridge = Bridge(commit)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(bridge.apply, request(tmp_path))
        begun.wait(10)
        second = pool.submit(bridge.apply, request(tmp_path))
        may_end.set()

        assert first.result(10) == second.result(10)
    assert len(bridge.reports) == 1


def test_apply_gives_the_errors_own_words(tmp_path: Path) -> None:
    """An error of this package is the answer, first word to last, with its kind."""

    def commit(_: Mapping[str, Any]) -> JobReport:
        raise CommitError("job-1", "job_stage_rename_files", (), "the disk is full")

    reply = json.loads(Bridge(commit).apply(request(tmp_path)))

    assert reply == {
        "ok": False,
        "error": "job job-1, job_stage_rename_files: the disk is full",
        "kind": "CommitError",
    }


@pytest.mark.parametrize(
    "error, text",
    [
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
        (KeyError(), "KeyError"),
        (
            KeyboardInterrupt(),
            "the job commit was interrupted; asynccommit status URL shows its state",
        ),
    ],
)
def test_apply_never_raises(
    tmp_path: Path, error: BaseException, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever happens is told to Spark in one line; the traceback goes to the log."""

    def commit(_: Mapping[str, Any]) -> JobReport:
        raise error

    reply = json.loads(Bridge(commit).apply(request(tmp_path)))

    assert reply["error"] == text
    assert "Traceback" not in reply["error"]
    assert caplog.records


def test_apply_tells_what_became_of_it(tmp_path: Path) -> None:
    """What was done after the failure, as rolling back, stands below the error."""

    def commit(_: Mapping[str, Any]) -> JobReport:
        error = CommitError("job-1", "job_stage_rename_files", (), "the disk is full")
        error.add_note("it was rolled back")
        raise error

    reply = json.loads(Bridge(commit).apply(request(tmp_path)))

    assert reply["error"].splitlines() == [
        "job job-1, job_stage_rename_files: the disk is full",
        "it was rolled back",
    ]


@pytest.mark.parametrize("text", ["", "[]", "{}", "no JSON"])
def test_apply_survives_a_request_that_is_none(text: str) -> None:
    """A text that is no request gets an answer too."""
    assert json.loads(Bridge().apply(text))["ok"] is False


@pytest.mark.parametrize("build", [None, "0.0.9 0123456789abcdef"])
@pytest.mark.parametrize("what", ["check", "commit", "clear"])
def test_apply_refuses_the_jar_of_another_version(
    tmp_path: Path, build: str | None, what: str
) -> None:
    """A request of a jar of another version is refused, whatever it asks for."""
    tasks = set_up(tmp_path)
    reply = json.loads(Bridge().apply(request(tmp_path, tasks=tasks, what=what, build=build)))

    assert reply["kind"] == "UnsupportedError"
    assert "the jar that asynccommit spark-conf writes, of the same environment" in reply["error"]
    assert [path.name for path in tmp_path.iterdir()] == ["_temporary"]


@pytest.mark.parametrize(
    "user, given, store",
    [
        ("alice", {}, {}),
        ("bob", {}, {"asynccommit.store": "jvm"}),
        ("", {}, {"asynccommit.store": "jvm"}),
        ("", {"kerberos_keytab": "alice.keytab"}, {}),
        (None, {}, {}),
    ],
)
def test_hdfs_is_opened_by_the_jvm_for_another_user(
    user: str | None,
    given: dict[str, str],
    store: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python opens HDFS itself as the user of the tasks only, or with credentials of its own."""
    monkeypatch.delenv("HADOOP_PROXY_USER", raising=False)
    monkeypatch.setenv("HADOOP_USER_NAME", "alice")
    monkeypatch.setattr(bridge, "storage_options", given)
    request: dict[str, Any] = {"dest": "hdfs://namenode/t", "conf": {}, "hadoopUser": user}

    assert bridge.storage_of(request) == {**store, **given}
    assert bridge.storage_of({**request, "dest": "abfs://c@a/t"}) == given
    chosen = {**request, "conf": {"spark.asynccommit.store": "native"}}
    assert bridge.storage_of(chosen) == {"asynccommit.store": "native", **given}


def test_pending_sets_of_another_user_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists of uploads on HDFS are read as the session's user, or the job is refused by name."""
    monkeypatch.setenv("HADOOP_PROXY_USER", "bob")
    told = request(tmp_path, what="check", actsAs="carol", pending="hdfs://namenode/tmp")

    reply = json.loads(Bridge().apply(told))

    assert "this session acts as carol" in reply["error"]
    assert "fs.s3a.committer.name=magic" in reply["error"]
    monkeypatch.setenv("HADOOP_PROXY_USER", "carol")
    assert "acts as" not in Bridge().apply(told)


def test_apply_refuses_to_overwrite_another_store(tmp_path: Path) -> None:
    """A directory to overwrite on another store is refused by name."""
    reply = json.loads(Bridge().apply(request(tmp_path, overwrite=["abfs://c@acc/x"])))

    assert reply["kind"] == "OptionError"
    assert "abfs://c@acc/x" in reply["error"]


def test_options_of_the_bridge_are_none_of_the_commit(tmp_path: Path) -> None:
    """Its own keys are taken, an unknown one of the family is an error."""
    own = {"spark.asynccommit.schemes": "file", "spark.asynccommit.unsupportedScheme": "refuse"}
    Bridge().apply(request(tmp_path, conf=own))
    reply = json.loads(
        Bridge().apply(request(tmp_path, "j2", conf={"spark.asynccommit.nonsense": "1"}))
    )
    assert reply["kind"] == "OptionError"
    assert "asynccommit.nonsense is not an option" in reply["error"]


def test_reports_are_bounded(tmp_path: Path) -> None:
    """A long session remembers the last hundred jobs."""
    bridge = Bridge(lambda what: JobReport(what["jobId"], what["dest"]))
    for number in range(130):
        bridge.apply(request(tmp_path, f"job-{number}"))

    assert len(bridge.reports) == 100
    assert bridge.reports[-1].job_id == "job-129"


@pytest.mark.parametrize("wish, shown", [("true", True), ("false", False), (None, True)])
def test_progress_is_shown_as_wished(
    wish: str | None, shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Progress is shown unless the option says no, or a hook of the user's takes it all."""
    conf = {} if wish is None else {"spark.asynccommit.progress": wish}
    assert bridge.is_shown(conf) is shown
    monkeypatch.setattr(bridge, "on_progress", lambda progress: None)
    assert not bridge.is_shown(conf)


def test_hook_hears_of_every_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress goes to the hook that is set when the commit begins."""
    heard: list[str] = []
    monkeypatch.setattr(bridge, "on_progress", lambda progress: heard.append(progress.stage))
    Bridge().apply(request(tmp_path, tasks=set_up(tmp_path)))

    assert "job_stage_rename_files" in heard


def test_a_check_finds_what_spark_has_set_up(tmp_path: Path) -> None:
    """Before any task runs Python says that it reaches the job's directory."""
    set_up(tmp_path)
    reply = json.loads(Bridge().apply(request(tmp_path, what="check")))

    assert reply == {"ok": True, "build": build_id()}
    assert not (tmp_path / "_SUCCESS").exists()


def test_a_check_sees_commits_that_were_cut_short(tmp_path: Path) -> None:
    """A job that would be written beside half of another's is refused, with what to type."""
    tasks = set_up(tmp_path)
    task = tmp_path / "_temporary/job-1/00/tasks" / tasks[0]["attemptId"] / "p=1/part-0.txt"
    kept = task.read_bytes()
    broken = Bridge(lambda what: task.unlink() or bridge.commit(what))
    assert not json.loads(broken.apply(request(tmp_path, tasks=tasks)))["ok"]
    (tmp_path / "_temporary/job-2/00/manifests").mkdir(parents=True)
    reply = json.loads(Bridge().apply(request(tmp_path, "job-2", what="check")))

    assert reply["kind"] == "UnfinishedError"
    assert f"asynccommit resume file:{tmp_path}" in reply["error"]
    assert f"asynccommit.spark.resume('file:{tmp_path}', 'job-1')" in reply["error"]

    task.write_bytes(kept)


def test_a_check_refuses_a_key_that_is_done(tmp_path: Path) -> None:
    """The same job, run again under another id, is recognised by its key."""
    conf = {"spark.asynccommit.job.key": "flights of July"}
    assert json.loads(Bridge().apply(request(tmp_path, tasks=set_up(tmp_path), conf=conf)))["ok"]
    (tmp_path / "_temporary/job-2/00/manifests").mkdir(parents=True)
    reply = json.loads(Bridge().apply(request(tmp_path, "job-2", what="check", conf=conf)))

    assert reply["kind"] == "CommittedError"
    assert "flights of July" in reply["error"]


def test_of_two_spellings_sparks_counts() -> None:
    """The JVM reads an option the same way."""
    conf = {"spark.asynccommit.rate": "7", "asynccommit.rate": "3"}

    assert bridge.options_of(conf).rate == bridge.options_of(dict(reversed(conf.items()))).rate == 7


def test_a_check_of_another_place_is_refused(tmp_path: Path) -> None:
    """Where Python does not find what Spark has just made, the two use different stores."""
    reply = json.loads(Bridge().apply(request(tmp_path, what="check")))

    assert not reply["ok"]
    assert "do both use the same account?" in reply["error"]


async def test_a_check_needs_credentials_that_work(adls_emulator: AdlsEmulator) -> None:
    """A key that Python has wrong is found before any task runs, and is not repeated."""
    adls_emulator.model.create_filesystem("data")
    wrong = "d3Jvbmcga2V5IGluZGVlZA=="
    asked = {
        "version": 1,
        "build": build_id(),
        "what": "check",
        "dest": f"abfs://data@{adls_emulator.account}.dfs.core.windows.net/t",
        "jobId": "job-1",
        "attempt": 0,
        "conf": {},
        "storage": {
            "fs.azure.abfs.endpoint": adls_emulator.endpoint.partition("://")[2],
            "fs.azure.always.use.https": "false",
            f"fs.azure.account.key.{adls_emulator.account}.dfs.core.windows.net": wrong,
            "fs.azure.createRemoteFileSystemDuringInitialization": "true",
        },
    }
    reply = json.loads(await asyncio.to_thread(Bridge().apply, json.dumps(asked)))

    assert not reply["ok"]
    assert "AuthenticationFailed" in reply["error"]
    assert wrong not in reply["error"]


def _layouts(emulator: GcsEmulator) -> int:
    return emulator.weather.requests["layout"]


@pytest.mark.parametrize("background", [True, False])
def test_a_job_opens_its_store_once(background: bool) -> None:
    """Heartbeats and commit use the store of the check; a new one would ask for the layout."""
    with running_gcs_emulator(buckets=["data"]) as emulator:
        storage = {"endpoint_url": emulator.endpoint, "token": "anon"}
        with sync.open_store("gs://data/t", storage_options=storage) as store:
            store.make_directories(["/t/_temporary/job-1/00/manifests"])
        with sync.job("gs://data/t", "job-1", storage_options=storage).task(0) as task:
            task.put("p=1/part-0.txt", b"one")
        assert task.commit is not None
        asked: dict[str, Any] = {
            "version": 1,
            "build": build_id(),
            "dest": "gs://data/t",
            "jobId": "job-1",
            "attempt": 0,
            "overwrite": [],
            "storage": storage,
            "conf": {} if background else {"spark.asynccommit.cleanup": "wait"},
        }
        before = emulator.do(_layouts)
        opened = Bridge()
        replies = [
            opened.apply(json.dumps({**asked, **more}))
            for more in ({"what": "check", "tasks": []}, {"tasks": [task.commit.to_json()]})
        ]
        assert [json.loads(reply)["ok"] for reply in replies] == [True, True]
        sync.wait_for_cleanup()
        assert emulator.do(_layouts) == before + 1
        assert heartbeat.committer_of("gs://data/t job-1 0") is None
        with sync.open_store("gs://data/t", storage_options=storage) as store:
            names = [info.path for info in store.list_tree("/t")]
        assert names == ["/t/_SUCCESS", "/t/p=1/part-0.txt"]


def test_a_job_that_another_process_has_set_up_is_told_apart(tmp_path: Path) -> None:
    """The JVM must not delete directories that another has made at the same moment."""
    (tmp_path / "_temporary/job-1/00/manifests").mkdir(parents=True)
    owner = tmp_path / "_temporary/job-1/00/job-owner.json"
    first = json.loads(Bridge().apply(request(tmp_path, what="check")))
    said = owner.read_bytes()
    second = json.loads(Bridge().apply(request(tmp_path, what="check")))

    assert first["ok"]
    assert (second["ok"], second["kind"]) == (False, "JobTakenError")
    assert owner.read_bytes() == said


def test_uploads_to_a_directory_bucket_are_refused_at_the_set_up() -> None:
    """Files are renamed there, and the tasks of Spark upload."""
    asked = {"conf": {}, "committer": "magic", "dest": "s3a://data--use1-az4--x-s3/t"}
    with pytest.raises(UnsupportedError, match=r"renamed into place.* write from Python"):
        bridge.options_for(asked)
