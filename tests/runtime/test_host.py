"""What is known of this machine: its clock, and which of its processes run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.runtime import host as module
from asynccommit.runtime.host import Host, own_name, this_host, user_name

linux = pytest.mark.skipif(not this_host().process, reason="needs /proc of Linux")
SAY = (
    "from asynccommit.runtime.host import this_host; "
    "print(this_host().process, flush=True); input()"
)


class Child:
    """A process that has said its name and waits."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", SAY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.name = self.process.stdout.readline().strip()

    def kill(self) -> None:
        """Kill it and wait until it has ended, but do not take it from the process table."""
        self.process.kill()
        os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)


@pytest.fixture
def child() -> Iterator[Child]:
    """Another process of this machine."""
    child = Child()
    yield child
    with child.process:
        child.process.kill()


def with_part(index: int, text: str) -> str:
    """Return the name of this process with one part of it changed."""
    parts = this_host().process.split(".")
    parts[index] = text
    return ".".join(parts)


def test_a_host_made_by_hand_knows_no_processes() -> None:
    """What is left out has a default that claims nothing."""
    host = Host(time.time, lambda: "id", this_host().rng)

    assert host.process == ""
    assert host.is_running(this_host().process) is None
    assert host.clock() <= host.clock()


def test_the_clock_counts_sleep_where_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is that of the time since the boot, or the one that every system has."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        before = time.clock_gettime(time.CLOCK_BOOTTIME)
        assert before <= this_host().clock() <= time.clock_gettime(time.CLOCK_BOOTTIME)

    monkeypatch.setattr(time, "CLOCK_BOOTTIME", 9999, raising=False)
    assert this_host().clock is time.monotonic
    monkeypatch.delattr(time, "CLOCK_BOOTTIME")
    assert this_host().clock is time.monotonic


def test_a_user_name_can_always_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name in the environment that is no UTF-8 does not spoil the files that it goes into."""
    monkeypatch.setenv("LOGNAME", "andr\udce9")

    assert this_host().user == "andr?"


@linux
def test_this_process_runs() -> None:
    """A process knows itself."""
    host = this_host()

    assert host.process.split(".")[0] == str(os.getpid())
    assert host.is_running(host.process) is True


@linux
def test_another_process_runs_until_it_is_killed(child: Child) -> None:
    """A process that was killed is dead at once, before and after its parent has noticed."""
    is_running = this_host().is_running

    assert is_running(child.name) is True
    child.kill()
    assert is_running(child.name) is False
    child.process.wait()
    assert is_running(child.name) is False


@linux
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_is_another_process() -> None:
    """A child that shares its parent's memory has a name of its own."""
    code = (
        "import os\nfrom asynccommit.runtime.host import this_host\nhere = this_host().process\n"
        "if not os.fork():\n    print(this_host().process != here, this_host().is_running(here),"
        " flush=True)\n    os._exit(0)\nos.wait()"
    )
    told = subprocess.check_output([sys.executable, "-c", code], text=True)

    assert told.split() == ["True", "True"]


@linux
def test_the_nearest_process_above_that_runs_a_program_is_named() -> None:
    """A process finds the shell that started it and waits, and no program that is not above it."""
    code = (
        "from asynccommit.runtime.host import process_above, this_host\n"
        "found = process_above('sh')\n"
        "print(found, this_host().is_running(found), process_above('no such') == '')"
    )
    # A shell hands its process over to a command that is its last.
    command = ["sh", "-c", '"$0" -c "$1"; exit', sys.executable, code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as shell:
        told, _ = shell.communicate()
    found, *others = told.split()

    assert found.split(".")[0] == str(shell.pid)
    assert others == ["True", "True"]


@linux
def test_a_number_in_use_again_is_another_process() -> None:
    """The number of a process that started at another time says nothing: the first is dead."""
    assert this_host().is_running(with_part(1, "1")) is False


@linux
@pytest.mark.parametrize(
    "index,text", [(2, "00000000-0000-4000-8000-000000000000"), (3, "4026000000")]
)
def test_of_another_boot_or_container_nothing_is_known(index: int, text: str) -> None:
    """The machine was started again, or has the same name as another one."""
    assert this_host().is_running(with_part(index, text)) is None


@linux
@pytest.mark.parametrize(
    "index,text",
    [
        *((0, text) for text in ("", "0", "-1", "x", "self", "../1", "1e3", "٣", "9" * 8)),
        *((1, text) for text in ("", "-1", "9" * 21, "1 ")),
        *((2, text) for text in ("", "x")),
        *((3, text) for text in ("", "0.0", "1\n")),
    ],
)
def test_what_is_no_process_is_not_told(index: int, text: str) -> None:
    """A damaged part is neither running nor dead."""
    assert this_host().is_running(with_part(index, text)) is None


@given(st.text(max_size=80) | st.just("1.") | st.just("1" * 1_000_000))
def test_any_text_is_not_told(text: str) -> None:
    """Garbage of any length is neither running nor dead."""
    assert this_host().is_running(text) is None


@linux
@pytest.mark.parametrize(
    "state,threads,runs",
    [("R", 1, True), ("S", 4, True), ("D", 1, True), ("Z", 1, False), ("X", 0, False)],
)
def test_a_process_runs_as_long_as_a_thread_of_it(
    state: str, threads: int, runs: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that only waits to be noticed is dead; one with a thread left is not."""
    host = this_host()
    monkeypatch.setattr(module, "_PROC", str(tmp_path))
    pid, start = host.process.split(".")[:2]

    for count, expected in ((threads, runs), (2, True)):
        write_status(tmp_path / pid, f"{pid} (a) Z ) {state} {'1 ' * 16}{count} 0 {start} 0 0\n")
        assert host.is_running(host.process) is expected


@linux
@pytest.mark.parametrize("status", ["", "7", "7 (x", "7 (x) R 1 2", "7 (x) R " + "y " * 30])
def test_a_status_that_cannot_be_read_tells_nothing(
    status: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A system that only looks like Linux does not make anybody dead, and names no process."""
    host = this_host()
    monkeypatch.setattr(module, "_PROC", str(tmp_path))
    write_status(tmp_path / str(os.getpid()), status)

    assert host.is_running(host.process) is None
    assert module._own.__wrapped__(os.getpid()) == ""


@linux
def test_a_process_that_is_hidden_is_not_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where /proc does not show the processes of others, nothing is known of them."""
    host = this_host()
    monkeypatch.setattr(module, "_PROC", str(tmp_path))
    assert host.is_running(host.process) is None

    def refuse(number: int, signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert host.is_running(host.process) is None


@linux
def test_the_proc_of_another_namespace_names_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where /proc counts processes otherwise than this process does, it is not believed."""
    status, boot = "77 (x) R " + "1 " * 30, this_host().process.split(".")[2]
    write_status(tmp_path / "self", status)
    (tmp_path / "sys/kernel/random").mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_text(f"{boot}\n")
    (tmp_path / "self/ns").mkdir()
    (tmp_path / "self/ns/pid").touch()
    monkeypatch.setattr(module, "_PROC", str(tmp_path))

    assert module._own.__wrapped__(77).startswith(f"77.1.{boot}.")
    assert module._own.__wrapped__(78) == ""


def write_status(directory: Path, status: str) -> None:
    """Write what the system would say of a process."""
    directory.mkdir(exist_ok=True)
    (directory / "stat").write_text(status)


@pytest.mark.parametrize(
    "owner, name", [("alice", "alice"), (0, "root, uid 0"), (987_654_321, "uid 987654321")]
)
def test_a_user_has_a_name_and_a_number(owner: int | str, name: str) -> None:
    """The number is told on local disks, and stands alone where it has no name."""
    assert user_name(owner) == name


def test_a_process_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container may run as a user that the machine does not know."""
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])

    assert own_name() == ""


def test_a_process_has_the_name_of_its_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable with another name, as YARN's containers have it, changes nothing."""
    before = own_name()
    monkeypatch.setenv("LOGNAME", f"not-{before}")

    assert own_name() == before != ""
