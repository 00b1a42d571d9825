"""The engine as a child of the JVM: a real process, and a test in the JVM's place."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from asynccommit import sync
from asynccommit.spark.channel import GONE
from asynccommit.spark.frames import Frame, FrameKind
from tests.support.child import running_child
from tests.support.spark import leftovers

# Prints like an interpreter that greets, and like a library that does not know of the frames.
PRINTS = """
import os, sys
print("Welcome")
sys.stdout.flush()
from asynccommit.spark import child
from asynccommit.spark.bridge import Bridge
answer = Bridge.apply
def noisy(self, request):
    print("printed", flush=True)
    os.write(1, b"written\\n")
    os.system("echo shouted")
    return answer(self, request)
Bridge.apply = noisy
sys.exit(child.main())
"""
ENDED = "WARNING asynccommit: the engine ends: its input has ended, so the JVM has\n"
# Holds a commit at its first rename, until a file is there.
HOLDS = """
import sys, time
from pathlib import Path
from tests.support.spark import after_renames
from asynccommit.spark import child
at, go = map(Path, sys.argv[1:])
def hold():
    at.touch()
    while not go.exists():
        time.sleep(0.01)
after_renames(2, hold)
sys.exit(child.main())
"""


def request(what: str, table: Path, job_id: str = "job-1", **more: Any) -> dict[str, Any]:
    """Return a request of the JVM's."""
    base = {"version": 1, "what": what, "dest": f"file:{table}", "jobId": job_id, "attempt": 0}
    return {**base, "conf": {}, "storage": {}, **more}


def set_up(table: Path, job_id: str = "job-1", files: int = 5) -> list[dict[str, Any]]:
    """Make what the JVM makes before it asks, and run a task; return the tasks' messages."""
    job = table / "_temporary" / job_id / "00"
    (job / "manifests").mkdir(parents=True)
    (job / "alive").mkdir()
    with sync.job(table, job_id).task(0) as task:
        for number in range(files):
            Path(task.path(f"p={number}/{job_id}.txt")).write_text("new")
    assert task.commit is not None
    return [task.commit.to_json()]


def files(table: Path) -> list[str]:
    """Return every file of the table."""
    found = sorted(str(path.relative_to(table)) for path in table.rglob("*.txt"))
    return [name for name in found if not name.startswith("_temporary")]


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    words = [sys.executable, "-m", "asynccommit", *arguments]
    return subprocess.run(words, capture_output=True, text=True, timeout=120)


def test_child_commits_as_the_driver_does(tmp_path: Path) -> None:
    """Requests are those of a Python driver, and whatever is printed is not taken for frames."""
    with running_child("-c", PRINTS) as child:
        tasks = set_up(tmp_path)
        checked = child.ask(**request("check", tmp_path))
        reply = child.ask(**request("commit", tmp_path, tasks=tasks, overwrite=[]))
        again = child.ask(**request("check", tmp_path, "job-2", build="0.0.9"))
        child.write(Frame(FrameKind.BYE).encode())
        code, said = child.wait()

    assert child.noise == b"Welcome\n"
    assert child.greeting["build"] == checked["build"]
    assert (checked["ok"], reply) == (True, {"ok": True, "files": 5, "bytes": 15})
    assert "the jar of this session is of asynccommit 0.0.9" in again["error"]
    assert (code, len(files(tmp_path))) == (0, 5)
    assert (said.count("printed"), said.count("written"), said.count("shouted")) == (3, 3, 3)


def test_many_requests_are_under_way_at_once(tmp_path: Path) -> None:
    """Answers come as they are ready, each with the number of its request."""
    with running_child() as child:
        for number in range(1, 21):
            table = tmp_path / str(number)
            messages = set_up(table, files=1)
            child.send(number, **request("commit", table, tasks=messages, overwrite=[]))
        replies = [child.read() for _ in range(20)]

    assert sorted(frame.number for frame in replies) == [*range(1, 21)]
    assert all(json.loads(frame.text)["ok"] for frame in replies)


def test_a_request_that_is_cut_is_not_begun(tmp_path: Path) -> None:
    """The JVM may die at any byte of a frame: the child ends, and nothing has happened."""
    tasks = set_up(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    text = json.dumps(request("commit", tmp_path, tasks=tasks, overwrite=[])).encode()
    whole = Frame(FrameKind.REQUEST, 1, text).encode()

    for length in (0, 3, 4, 5, 12, 13, len(whole) // 2, len(whole) - 1):
        with running_child() as child:
            child.write(whole[:length])
            code, said = child.end()
        assert (code, said) == (GONE, ENDED)
    assert sorted(tmp_path.rglob("*")) == before


def test_bytes_that_are_no_frame_end_the_child() -> None:
    """Once the frames are out of step nothing that follows is believed."""
    with running_child() as child:
        child.write(b"GET / HTTP/1.1\r\n\r\n")
        code, said = child.wait()

    assert code == GONE
    assert "the JVM has sent a frame of 1195725856 bytes" in said


def test_a_request_that_cannot_be_answered_ends_the_child() -> None:
    """The JVM does not wait for ever for the answer to what is no text."""
    with running_child() as child:
        child.write(Frame(FrameKind.REQUEST, 1, b"\xff").encode())
        code, said = child.wait()

    assert code == GONE
    assert "a request was not answered: UnicodeDecodeError" in said


def test_the_end_of_the_jvm_ends_a_commit(tmp_path: Path) -> None:
    """Nothing is begun after the end of input, and a resume needs no force: the owner is dead."""
    table = tmp_path / "t"
    at, go = tmp_path / "at", tmp_path / "go"
    with running_child("-c", HOLDS, str(at), str(go)) as child:
        tasks = set_up(table)
        assert child.ask(**request("check", table))["ok"]
        child.send(2, **request("commit", table, tasks=tasks, overwrite=[]))
        while not at.exists():
            time.sleep(0.01)
        code, _ = child.end()
    left = files(table)
    shown = command("status", str(table)).stdout
    resumed = command("resume", str(table))

    assert (code, len(left)) == (GONE, 2)
    assert "asynccommit resume" in shown
    assert resumed.returncode == 0, resumed.stderr
    assert len(files(table)) == 5
    assert leftovers(table) == []


def test_a_jvm_that_ends_in_order_is_waited_for(tmp_path: Path) -> None:
    """A commit that is under way ends, and is answered, before the child goes."""
    at, go = tmp_path / "at", tmp_path / "go"
    table = tmp_path / "t"
    with running_child("-c", HOLDS, str(at), str(go)) as child:
        tasks = set_up(table)
        child.send(1, **request("commit", table, tasks=tasks, overwrite=[]))
        while not at.exists():
            time.sleep(0.01)
        child.write(Frame(FrameKind.BYE).encode())
        go.touch()
        reply = json.loads(child.read().text)
        code, _ = child.wait()

    assert (code, reply["ok"], len(files(table))) == (0, True, 5)


def test_an_interrupt_of_the_terminal_is_the_jvms(tmp_path: Path) -> None:
    """Ctrl-C reaches the whole group of processes; the JVM decides what it ends."""
    with running_child() as child:
        child.process.send_signal(signal.SIGINT)
        tasks = set_up(tmp_path)
        reply = child.ask(**request("commit", tmp_path, tasks=tasks, overwrite=[]))

    assert reply["ok"]


def test_arguments_and_variables_have_no_secret(tmp_path: Path) -> None:
    """Credentials come over the channel only, and no log repeats them."""
    with running_child() as child:
        there = Path("/proc", str(child.process.pid))
        storage = {"fs.azure.account.key": "c2VjcmV0"}
        child.ask(**request("check", tmp_path / "none", storage=storage))
        seen = (there / "cmdline").read_bytes() + (there / "environ").read_bytes()
        fds = {os.readlink(there / "fd" / number) for number in ("0", "1", "2")}
        _, said = child.end()

    assert b"c2VjcmV0" not in seen
    assert "c2VjcmV0" not in said
    assert os.devnull in fds
    assert len(fds) == 2


def test_another_user_is_refused_by_name() -> None:
    """A session that acts as another user is refused where that user's rights are not used."""
    dest = "abfs://data@account.dfs.core.windows.net/t"
    with running_child() as child:
        reply = child.ask(**request("check", Path("/t"), actsAs="alice") | {"dest": dest})

    assert "this session acts as alice" in reply["error"]
    assert "spark.asynccommit.store=jvm" in reply["error"]


def test_tasks_of_another_user_are_refused_on_hdfs() -> None:
    """A session's user may not move what tasks of the server's have made: nothing is begun."""
    told = request("check", Path("/t"), hadoopUser="", actsAs="alice", tasksAs="spark")
    with running_child() as child:
        reply = child.ask(**told | {"dest": "hdfs://127.0.0.1:1/t"})

    assert "acts as alice, but its tasks write as spark" in reply["error"]
    assert "hive.server2.enable.doAs=false" in reply["error"]


@pytest.mark.parametrize("user", ["alice", ""])
def test_hdfs_is_opened_by_the_jvm_for_another_user(user: str) -> None:
    """The child asks the JVM for a filesystem on which it would be somebody else itself."""
    told = request("check", Path("/t"), hadoopUser=user, actsAs="alice", tasksAs="alice")
    with running_child() as child:
        child.send(1, **told | {"dest": "hdfs://127.0.0.1:1/t"})
        frame = child.read()

    asked = {"what": "has", "name": "hdfs://127.0.0.1:1"}
    assert (frame.kind, json.loads(frame.text)) == (FrameKind.REQUEST, asked)
