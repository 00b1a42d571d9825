"""``status``: every state of a job, told with what a resume or an abort would do."""

from __future__ import annotations

import io
import os
import re
import shlex
import time
from hashlib import sha256
from pathlib import Path

import pytest

from asynccommit.cli import main
from asynccommit.cli.output import Exit, Output
from asynccommit.commit.layouts.layout import Layout
from asynccommit.formats.commit_owner import Decision, Outcome, encode_decision
from asynccommit.inspect.advice import on_resume
from asynccommit.inspect.status import JobView, LastSuccess, Situation
from asynccommit.inspect.text import situation
from asynccommit.results import JobState, JobStatus
from asynccommit.runtime.cells import to_text
from asynccommit.stores.urls import Address, parse_url
from asynccommit.testing.emulators.adls.emulator import EmulatorThread
from tests.cli.support import Command, cut_short, let_live, prepare
from tests.crash_real.places import AdlsPlace
from tests.crash_real.places import prepare as prepare_tasks
from tests.support.jobs import JOB, left, visible, write
from tests.support.permissions import GIVES_AWAY, give_away


def only_job(command: Command, dest: Path) -> dict[str, object]:
    """Return the one job that ``status`` tells of."""
    found = command.json("status", dest)
    assert found["code"] == 0
    (job,) = found["jobs"]
    assert isinstance(job, dict)
    return job


def test_a_stopped_commit(command: Command, tmp_path: Path) -> None:
    """How far it came, why it stopped, and both commands; nothing is changed."""
    cut_short(tmp_path)
    before = left(tmp_path), visible(tmp_path)

    job = only_job(command, tmp_path)

    assert (job["state"], job["done"], job["files"], job["tasks"]) == ("stopped", 1, 3, 2)
    assert job["owner"] == "alice@driver-0"
    assert "not today" in str(job["error"])
    assert isinstance(job["age"], float)
    resume, abort = job["resume"], job["abort"]
    assert isinstance(resume, dict)
    assert isinstance(abort, dict)
    assert resume["does"] == "moves the other 2 of 3 files and writes _SUCCESS"
    assert resume["command"] == f"asynccommit resume file:{tmp_path} --job-id {JOB}"
    assert "undoes 1 file" in abort["does"]
    assert abort["command"] == f"asynccommit abort file:{tmp_path} --job-id {JOB} --rollback"
    assert (left(tmp_path), visible(tmp_path)) == before


def test_the_table(command: Command, tmp_path: Path) -> None:
    """People get a table with one line a job, and what to type in a line of its own."""
    prepare(tmp_path, job_id="b")
    cut_short(tmp_path, job_id="a")

    assert command("status", tmp_path) == 0

    lines = command.out.splitlines()
    assert any(line.split()[:2] == ["a", "stopped"] and "1 of 3 files" in line for line in lines)
    assert any(line.split()[:2] == ["b", "running"] for line in lines)
    assert f"            asynccommit resume file:{tmp_path} --job-id a" in lines
    assert command.err == ""


@pytest.mark.parametrize("silent, state", [(0.0, "committing"), (1000.0, "expired")])
def test_an_owner_elsewhere(command: Command, tmp_path: Path, silent: float, state: str) -> None:
    """An owner on another machine lives until its lease is over; until then takeover is named."""
    let_live(cut_short(tmp_path), silent)

    job = only_job(command, tmp_path)

    assert job["state"] == state
    resume = job["resume"]
    assert isinstance(resume, dict)
    verb = "takeover" if state == "committing" else "resume"
    assert resume["command"] == f"asynccommit {verb} file:{tmp_path} --job-id {JOB}"


@pytest.mark.parametrize(
    "outcome, state, does",
    [
        (Outcome.ROLLBACK, "rolling back", "finishes the rollback"),
        (Outcome.COMMITTED, "committed", "finishes the clean-up"),
    ],
)
def test_a_decided_commit(
    command: Command, tmp_path: Path, outcome: Outcome, state: str, does: str
) -> None:
    """What has been decided is what a resume would finish."""
    attempt = cut_short(tmp_path)
    commit = sha256((attempt / "commit-record.json").read_bytes()).hexdigest()
    decision = Decision(outcome, 1, "one", 1_795_000_000_000, commit)
    (attempt / "commit-outcome.json").write_bytes(encode_decision(decision))

    job = only_job(command, tmp_path)

    resume = job["resume"]
    assert isinstance(resume, dict)
    assert job["state"] == state
    assert resume["does"].startswith(does)


def test_a_running_job(command: Command, tmp_path: Path) -> None:
    """A job whose commit has not begun shows how many of its tasks have committed."""
    attempt = prepare(tmp_path)
    hour_ago = time.time() - 3600
    os.utime(attempt, (hour_ago, hour_ago))

    job = only_job(command, tmp_path)

    assert (job["state"], job["tasks"], job["done"]) == ("running", 2, None)
    assert job["owner"] == "alice@driver-0"
    assert isinstance(job["age"], float)
    assert job["age"] > 3500
    resume, abort = job["resume"], job["abort"]
    assert isinstance(resume, dict)
    assert isinstance(abort, dict)
    assert (resume["command"], abort["command"]) == ("", "")


def test_a_dead_job(command: Command, tmp_path: Path) -> None:
    """A job whose driver is silent for longer than its lease is dead, and may be aborted."""
    attempt = prepare(tmp_path)
    hour_ago = time.time() - 3600
    os.utime(attempt / "job-owner.json", (hour_ago, hour_ago))

    job = only_job(command, tmp_path)

    assert job["state"] == "dead"
    assert "its lease is 300 s" in str(job["why"])
    resume, abort = job["resume"], job["abort"]
    assert isinstance(resume, dict)
    assert isinstance(abort, dict)
    assert resume["command"].endswith(f"--job-id {JOB} --tasks 2")
    assert main(shlex.split(abort["command"])[1:]) == 0
    assert left(tmp_path) == []


def test_a_job_without_heartbeats(command: Command, tmp_path: Path) -> None:
    """Of a job of Hadoop's nobody knows whether it lives; what is as old as a day does not."""
    attempt = prepare(tmp_path)
    (attempt / "job-owner.json").unlink()

    job = only_job(command, tmp_path)

    assert job["state"] == "unknown"
    abort = job["abort"]
    assert isinstance(abort, dict)
    assert command("abort", tmp_path) == Exit.REFUSED
    assert abort["command"] in command.err
    assert left(tmp_path) != []
    days_ago = time.time() - 2 * 86_400
    for path in (attempt, *attempt.rglob("*")):
        os.utime(path, (days_ago, days_ago))
    assert only_job(command, tmp_path)["state"] == "dead"
    assert command("abort", tmp_path) == 0
    assert left(tmp_path) == []


def test_a_commit_of_hadoops_that_is_half_done(command: Command, tmp_path: Path) -> None:
    """Files that are gone from where tasks left them, and no record: somebody else's commit."""
    attempt = prepare(tmp_path)
    moved = next(attempt.glob("tasks/*/day=2/part-0"))
    (tmp_path / "day=2").mkdir()
    moved.rename(tmp_path / "day=2/part-0")

    job = only_job(command, tmp_path)

    resume, abort = job["resume"], job["abort"]
    assert isinstance(resume, dict)
    assert isinstance(abort, dict)
    assert "1 of 3 files" in resume["does"]
    assert resume["command"].endswith("--adopt")
    assert "1 file that another commit moved would remain" in abort["does"]


def test_a_damaged_record(command: Command, tmp_path: Path) -> None:
    """A record that cannot be read is a problem of its job, and hides no other."""
    prepare(tmp_path, job_id="b")
    (cut_short(tmp_path, job_id="a") / "commit-record.json").write_text("{}")

    found = command.json("status", tmp_path)

    assert [job["job_id"] for job in found["jobs"]] == ["a", "b"]
    assert "commit-record.json" in found["jobs"][0]["problem"]
    assert command("status", tmp_path) == 0
    assert "unknown" in command.out


@pytest.mark.parametrize("content", [b"", b"\0" * 500])
def test_a_record_without_content(command: Command, tmp_path: Path, content: bytes) -> None:
    """What a power cut left of a record was never written: the commit has not begun."""
    attempt = prepare(tmp_path)
    (attempt / "commit-record.json").write_bytes(content)

    assert only_job(command, tmp_path)["state"] == "running"
    assert command("resume", tmp_path) == 3
    assert command("commit", tmp_path, "--tasks", "2") == 0
    assert len(visible(tmp_path)) == 3


def test_rubbish_and_classic_jobs(command: Command, tmp_path: Path) -> None:
    """What jobs that have ended left is named, with what deletes it; so are jobs not of ours."""
    for name in ("00.committed", "01.aborted", "02.rolledback"):
        write(tmp_path, {f"_temporary/old/{name}/tasks/x/part": "x"})
    write(tmp_path, {"_temporary/0/_temporary/attempt_1_0/part-0": "x"})

    found = command.json("status", tmp_path)

    assert [rubbish["path"].rpartition("/")[2] for rubbish in found["rubbish"]] == [
        "00.committed",
        "01.aborted",
        "02.rolledback",
    ]
    assert (found["jobs"], found["classic"]) == ([], ["0"])
    assert command("status", tmp_path) == 0
    assert "3 directories of jobs that ended" in command.out
    assert "FileOutputCommitter" in command.out
    for rubbish in found["rubbish"]:
        assert main(shlex.split(rubbish["command"])[1:]) == 0
    assert command.json("status", tmp_path)["rubbish"] == []


@pytest.mark.parametrize("age", [0, 3_600])
def test_a_set_up_that_was_cut_short(command: Command, tmp_path: Path, age: int) -> None:
    """An empty job directory is a job, and the shown command deletes it."""
    place = tmp_path / f"_temporary/{JOB}/00"
    place.mkdir(parents=True)
    when = place.stat().st_mtime - age
    os.utime(place, (when, when))
    job = command.json("status", tmp_path)["jobs"][0]

    assert job["state"] == ("dead" if age else "unknown")
    assert job["resume"] == {"does": "nothing: its set-up was cut short", "command": ""}
    assert command("abort", tmp_path) == (0 if age else Exit.REFUSED)
    assert place.exists() is (age == 0)
    assert command(*shlex.split(job["abort"]["command"])[1:]) == 0
    assert left(tmp_path) == []


def test_the_empty_directory_of_a_job(command: Command, tmp_path: Path) -> None:
    """So is the directory of a job without an attempt; one of FileOutputCommitter is not."""
    for name in (JOB, "0"):
        (tmp_path / "_temporary" / name).mkdir(parents=True)
    found = command.json("status", tmp_path)["rubbish"]

    assert [one["path"] for one in found] == [f"{tmp_path}/_temporary/{JOB}"]
    assert command(*shlex.split(found[0]["command"])[1:]) == 0
    assert left(tmp_path) == ["_temporary/0"]


def test_nothing_there(command: Command, tmp_path: Path) -> None:
    """No job is an answer; no directory is an error with its own code."""
    assert command("status", tmp_path) == 0
    assert "no job" in command.out
    assert command("status", tmp_path / "no") == 5


def test_a_job_on_an_account(command: Command, adls_emulator_thread: EmulatorThread) -> None:
    """A store that needs credentials takes them as the other verbs do."""
    place = AdlsPlace(adls_emulator_thread)
    prepare_tasks(place, tasks=2, files=3)

    found = command.json("status", place.url, *place.arguments)

    (job,) = found["jobs"]
    assert (job["state"], job["tasks"]) == ("unknown", 2)
    assert job["abort"]["command"].startswith(f"asynccommit abort {place.url} ")


def test_every_state_is_told() -> None:
    """Every state there is has its row."""
    dest = Address("file", "", "/t")
    states = [JobStatus("j", 0, state, epoch=1) for state in JobState]
    views = [JobView(status, Layout(dest, f"j{n}", n)) for n, status in enumerate(states)]

    text = to_text(situation(Situation(dest, views)))

    assert all(str(state) in text for state in JobState)


def test_commands_hold_nothing_hostile(tmp_path: Path, command: Command) -> None:
    """What cannot be seen is written as bash reads it, so that it can be copied."""
    name = "a\x1b[31m\n"
    attempt = prepare(tmp_path / name)
    (attempt / "job-owner.json").unlink()

    assert command("status", tmp_path / name) == 0
    assert "\x1b" not in command.out
    assert r"\U0000001b[31m\U0000000a'" in command.out


class Terminal(io.StringIO):
    """What a program takes for a terminal."""

    def isatty(self) -> bool:
        """Whether it is one."""
        return True


def test_a_long_command_stays_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """A narrow terminal wraps a command itself, so that it can still be copied."""
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout", shown := Terminal())
    status = JobStatus("j", 0, JobState.STOPPED, epoch=1, files=3, done=1)
    layout = Layout(Address("file", "", "/" + "x" * 200), "j")

    view = JobView(status, layout, resume=on_resume(status, layout))
    Output().result({}, situation(Situation(layout.dest, [view])))

    assert f"asynccommit resume file:/{'x' * 200} --job-id j\n" in shown.getvalue()


def test_ids_are_not_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    """In 80 columns each job of Spark is one row, and its age and owner are below."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout", shown := Terminal())
    name, dest = "6f1c8a5e-4c1b-4c6e-9d7e-2b1f0c9a7d11", Address("file", "", "/t")
    status = JobStatus(name, 0, JobState.STOPPED, epoch=1, files=1_460, done=730, owner="ann@host")
    job = JobView(status, Layout(dest, name), age=75.0, silent=71.0)

    Output().result({}, situation(Situation(dest, [job])))

    lines = [re.sub(r"\x1b\[[\d;]*m", "", line) for line in shown.getvalue().splitlines()]
    assert max(map(len, lines)) <= 80
    (row,) = (line for line in lines if line.startswith(f"  {name}"))
    assert row.split()[1:] == ["stopped", "730", "of", "1,460", "files"]
    assert "    age     1 min 15 s" in map(str.rstrip, lines)
    assert "    owner   ann@host, last heartbeat 1 min 11 s ago" in map(str.rstrip, lines)
    assert "\x1b[31mstopped" in shown.getvalue(), "the state is red"


def test_check_exits_with_3_if_a_job_needs_somebody(command: Command, tmp_path: Path) -> None:
    """A stopped commit is such a job; a running one and an ended one are not."""
    assert command.json("status", tmp_path, "--check")["code"] == Exit.DONE
    cut_short(tmp_path)
    found = command.json("status", tmp_path, "--check")
    assert (found["code"], found["sound"]) == (Exit.REFUSED, False)
    assert command.json("status", tmp_path)["code"] == Exit.DONE

    command.json("resume", tmp_path)
    found = command.json("status", tmp_path, "--check")
    assert (found["code"], found["sound"]) == (Exit.DONE, True)


def test_the_last_success(command: Command, tmp_path: Path) -> None:
    """The marker tells which job it was and when; an empty one only when."""
    assert command.json("status", tmp_path)["last_success"] is None
    cut_short(tmp_path)
    command.json("resume", tmp_path)
    last = command.json("status", tmp_path)["last_success"]
    assert isinstance(last, dict)
    assert last["job_id"] == JOB
    assert abs(last["at_ms"] / 1000 - time.time()) < 3600

    shown = to_text(situation(Situation(parse_url(str(tmp_path)), last=LastSuccess(0, JOB))))
    assert f"last success 1970-01-01T00:00:00+00:00 by job {JOB}" in shown

    (tmp_path / "_SUCCESS").write_bytes(b"")
    last = command.json("status", tmp_path)["last_success"]
    assert isinstance(last, dict)
    assert last["job_id"] == ""
    assert abs(last["at_ms"] / 1000 - time.time()) < 3600


@GIVES_AWAY
def test_a_commit_of_another_user(command: Command, tmp_path: Path) -> None:
    """Instead of commands it names the user and the directory to look at."""
    place = cut_short(tmp_path)
    give_away(place.parent)
    job = only_job(command, tmp_path)
    look = f"its record belongs to uid 1234: look at {place} before anybody acts on it"

    assert job["belongs_to"] == "uid 1234"
    assert job["resume"] == {"does": look, "command": ""}
    assert job["abort"] == {"does": "", "command": ""}
    assert command("status", tmp_path) == 0
    assert "belongs to uid 1234" in command.out
    assert "asynccommit resume" not in command.out


@GIVES_AWAY
def test_a_resume_by_hand_tells_whose_the_commit_is(command: Command, tmp_path: Path) -> None:
    """It is done for who asks for it, with one line that names the user."""
    give_away(cut_short(tmp_path).parent)

    assert command("resume", tmp_path) == 0
    (line,) = [line for line in command.err.splitlines() if "uid 1234" in line]
    assert line.strip() == "warning: the record of its commit belongs to uid 1234"
    assert left(tmp_path) == []
