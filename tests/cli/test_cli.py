"""The command: what it does, what it says, and how it ends."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from asynccommit import __version__
from asynccommit.cli import main
from asynccommit.cli.arguments import absolute
from asynccommit.cli.output import Exit, exit_code
from asynccommit.errors import (
    CommitError,
    CommittedError,
    CommitUnknownError,
    DeniedError,
    LeaseLostError,
    ManifestError,
    NotFoundError,
    OptionError,
    OutcomeUnknownError,
    OwnedError,
    PreflightError,
    UnfinishedError,
    UnsupportedError,
    UrlError,
    ValidationError,
)
from tests.cli.support import TASKS, Command, cut_short, failing_disk, prepare
from tests.support.jobs import JOB, left, visible, write

HOSTILE = "day=\x1b[31m[red]\u202e\n"


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """The command."""
    return Command(capsys)


# --- commit ------------------------------------------------------------------------------------


def test_commit_makes_the_files_visible(command: Command, tmp_path: Path) -> None:
    """The one job under a destination is found, named, committed and reported."""
    prepare(tmp_path)

    assert command("commit", tmp_path, "--tasks", "2") == 0
    assert visible(tmp_path) == {**TASKS[0], **TASKS[1]}
    assert left(tmp_path) == []
    assert f"found job {JOB}: 2 tasks committed" in command.err
    assert "committed 3 files, 11 B, of 2 tasks" in command.out


def test_commit_json_is_the_report(command: Command, tmp_path: Path) -> None:
    """With --json standard output is the report and nothing else."""
    prepare(tmp_path)

    report = command.json("commit", tmp_path, "--trust-manifests")

    assert report["code"] == 0
    assert (report["job_id"], report["files"], report["bytes"]) == (JOB, 3, 11)
    assert report["success"] == f"file:{tmp_path}/_SUCCESS"
    assert report["dry_run"] is False
    assert len(report["tasks"]) == 2


@pytest.mark.parametrize("words", [["status"], ["inspect"], ["simulate", "--files", "10"]])
def test_quiet_does_not_hide_an_answer(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command that answers a question prints the answer with --quiet as well."""
    prepare(tmp_path)
    place = [] if words[0] == "simulate" else [str(tmp_path)]

    main([*words, *place, "--quiet"])

    assert capsys.readouterr().out != ""


def test_a_quiet_check_answers_by_its_exit_code(command: Command, tmp_path: Path) -> None:
    """``status --check --quiet`` prints nothing, for scripts."""
    assert command("status", tmp_path, "--check", "--quiet") == 0


def test_commit_quiet_says_nothing(command: Command, tmp_path: Path) -> None:
    """With --quiet a commit that succeeds says nothing at all."""
    prepare(tmp_path)

    assert command("commit", tmp_path, "--tasks", "2", "--quiet") == 0
    assert (command.out, command.err) == ("", "")


def test_commit_needs_to_know_the_tasks(command: Command, tmp_path: Path) -> None:
    """Without the number of tasks nobody can tell whether all have committed: a usage error."""
    prepare(tmp_path)

    error = command.json("commit", tmp_path)

    assert error["code"] == error["exit_code"] == Exit.USAGE
    assert error["error"] == "usage"
    assert "--tasks N" in error["message"]
    assert visible(tmp_path) == {}


@pytest.mark.parametrize("tasks", ["0", "1", "3"])
def test_commit_refuses_another_number_of_tasks(
    command: Command, tmp_path: Path, tasks: str
) -> None:
    """A manifest that is missing, or one too many, is a refusal that changes nothing."""
    prepare(tmp_path)
    before = left(tmp_path)

    error = command.json("commit", tmp_path, "--tasks", tasks)

    assert (error["code"], error["error"]) == (Exit.REFUSED, "refused")
    assert (error["job_id"], error["stage"]) == (JOB, "job_stage_load_manifests")
    assert f"2 tasks committed, but --tasks is {tasks}" in error["message"]
    assert visible(tmp_path) == {}
    assert left(tmp_path) == before


def test_commit_dry_run_changes_nothing(command: Command, tmp_path: Path) -> None:
    """A dry run says what would be done."""
    prepare(tmp_path)
    before = left(tmp_path)

    report = command.json("commit", tmp_path, "--dry-run")

    assert (report["code"], report["dry_run"], report["files"]) == (0, True, 3)
    assert f"{tmp_path}/day=2/part-0" in report["filenames"]
    assert left(tmp_path) == before
    assert command("commit", tmp_path, "--dry-run") == 0
    assert "would commit 3 files" in command.out


def test_commit_conflict_is_refused(command: Command, tmp_path: Path) -> None:
    """A file in the way ends a commit, and a dry run, before anything has changed."""
    prepare(tmp_path)
    write(tmp_path, {"day=1/part-0": "old"})

    for options in (["--tasks", "2"], ["--dry-run"]):
        assert command("commit", tmp_path, *options) == Exit.REFUSED
        assert "day=1/part-0" in command.err
        assert "Nothing under" in command.err
    assert visible(tmp_path) == {"day=1/part-0": "old"}


def test_commit_option_has_its_effect(command: Command, tmp_path: Path) -> None:
    """An option under Hadoop's name is obeyed; a path in it is relative to where we are."""
    prepare(tmp_path / "table")
    write(tmp_path / "table", {"day=1/part-0": "old"})
    key = "mapreduce.manifest.committer."
    reports = os.path.relpath(tmp_path / "reports")

    code = command(
        *("commit", tmp_path / "table", "--tasks", "2"),
        *("-o", f"{key}delete.target.files=true", "-o", f"{key}summary.report.directory={reports}"),
    )

    assert code == 0
    assert visible(tmp_path / "table")["day=1/part-0"] == "one"
    assert (tmp_path / "reports" / f"summary-{JOB}.json").is_file()


def test_commit_dead_option_warns(command: Command, tmp_path: Path) -> None:
    """An option that has no effect is a warning on standard error, also with --json."""
    prepare(tmp_path)

    option = "mapreduce.manifest.committer.manifest.save.attempts=7"
    report = command.json("commit", tmp_path, "--tasks", "2", "-o", option)

    assert report["code"] == 0
    assert command.err.startswith("warning: mapreduce.manifest.committer.manifest.save.attempts")


@pytest.mark.parametrize("option", ["novalue", "=x", "asynccommit.rate=fast"])
def test_commit_bad_option_is_usage(command: Command, tmp_path: Path, option: str) -> None:
    """An option that cannot be read is a usage error."""
    prepare(tmp_path)

    assert command("commit", tmp_path, "--tasks", "2", "-o", option) == Exit.USAGE
    assert visible(tmp_path) == {}


def test_commit_twice_is_done(command: Command, tmp_path: Path) -> None:
    """A job that was committed before is done, if it is named."""
    prepare(tmp_path)
    assert command("commit", tmp_path, "--tasks", "2") == 0

    assert command.json("commit", tmp_path, "--tasks", "2", "--job-id", JOB)["already"] is True
    assert command("commit", tmp_path, "--tasks", "2") == Exit.NOT_FOUND
    assert command("commit", tmp_path, "--tasks", "2", "--job-id", "other") == Exit.NOT_FOUND


def test_commit_begun_is_refused(command: Command, tmp_path: Path) -> None:
    """A job whose commit has begun is not committed again by hand: what to type is said."""
    (prepare(tmp_path) / "commit-record.json").write_text("{}")

    assert command("commit", tmp_path, "--tasks", "2") == Exit.REFUSED
    assert "has already begun" in command.err
    assert command.err.endswith(f": asynccommit resume file:{tmp_path} --job-id {JOB}\n")


def test_commit_staged_files_are_refused(command: Command, tmp_path: Path) -> None:
    """Files staged for elsewhere would be lost without the commit messages: refused."""
    write(prepare(tmp_path), {"absolute/attempt/part-0": "x"})

    assert command("commit", tmp_path, "--trust-manifests") == Exit.REFUSED
    assert "outside the destination" in command.err


def test_commit_several_jobs_are_listed(command: Command, tmp_path: Path) -> None:
    """With several jobs the one has to be named; they are listed."""
    prepare(tmp_path, job_id="a")
    prepare(tmp_path, job_id="b")

    error = command.json("commit", tmp_path, "--tasks", "2")

    assert (error["code"], error["error"]) == (Exit.USAGE, "usage")
    assert [job["job_id"] for job in error["jobs"]] == ["a", "b"]
    assert command("commit", tmp_path, "--tasks", "2", "--job-id", "b") == 0
    assert [name for name in left(tmp_path) if name.count("/") == 1] == ["_temporary/a"]


def test_commit_several_attempts_need_a_number(command: Command, tmp_path: Path) -> None:
    """With several attempts of a job the number has to be said."""
    prepare(tmp_path)
    prepare(tmp_path, attempt=1)

    assert command("commit", tmp_path, "--tasks", "2") == Exit.USAGE
    assert "--attempt" in command.err
    assert command("commit", tmp_path, "--tasks", "2", "--attempt", "1") == 0


def test_commit_older_layout(command: Command, tmp_path: Path) -> None:
    """A job in the layout of Hadoop before 3.4.1 is found, shown and committed."""
    prepare(tmp_path, prefix="manifest_")

    assert command.json("inspect", tmp_path)["parts"][0]["facts"]["job_id"] == JOB
    assert command("commit", tmp_path, "--dry-run") == 0
    assert command("commit", tmp_path, "--tasks", "2") == 0
    assert visible(tmp_path) == {**TASKS[0], **TASKS[1]}
    assert left(tmp_path) == []


def test_commit_half_way_fails_with_one(command: Command, tmp_path: Path) -> None:
    """A commit that fails half-way ends with 1 and says what is left."""
    attempt = prepare(tmp_path)
    with failing_disk("part-0"):
        error = command.json("commit", tmp_path, "--tasks", "2")

    assert (error["code"], error["error"]) == (Exit.FAILED, "failed")
    assert str(attempt) in error["message"]
    assert attempt.is_dir()


def test_commit_inside_of_a_job_is_usage(command: Command, tmp_path: Path) -> None:
    """The path of a job's directory names the destination to give instead."""
    attempt = prepare(tmp_path)

    assert command("commit", attempt, "--trust-manifests") == Exit.USAGE
    assert f"give the destination file:{tmp_path}" in command.err


# --- abort -------------------------------------------------------------------------------------


def test_abort_deletes_the_job(command: Command, tmp_path: Path) -> None:
    """An abort leaves nothing of the job, and may be repeated."""
    prepare(tmp_path)

    assert command.json("abort", tmp_path, "--force")["job_id"] == JOB
    assert left(tmp_path) == []
    assert command("abort", tmp_path, "--job-id", JOB) == 0
    assert "nothing to clean up" in command.out
    assert command("abort", tmp_path) == Exit.NOT_FOUND


def test_abort_leaves_other_jobs(command: Command, tmp_path: Path) -> None:
    """An abort touches the job that is named, and no other."""
    prepare(tmp_path, job_id="a")
    prepare(tmp_path, job_id="b")

    assert command("abort", tmp_path) == Exit.USAGE
    assert command("abort", tmp_path, "--job-id", "a", "--force") == 0
    assert command("commit", tmp_path, "--tasks", "2") == 0


def test_abort_of_a_begun_commit_is_refused(command: Command, tmp_path: Path) -> None:
    """A job whose commit has begun is kept, and what to type is said."""
    attempt = cut_short(tmp_path)

    report = command.json("abort", tmp_path)

    assert (report["code"], report["outcome"]) == (Exit.REFUSED, "kept")
    assert attempt.is_dir()
    assert command("abort", tmp_path) == Exit.REFUSED
    assert command.out.endswith(f"asynccommit abort file:{tmp_path} --job-id {JOB} --rollback\n")


# --- inspect -----------------------------------------------------------------------------------


def test_inspect_shows_what_would_be_renamed(command: Command, tmp_path: Path) -> None:
    """A destination with a job shows its tasks, its files with sizes, and that all is well."""
    prepare(tmp_path)

    assert command("inspect", tmp_path) == 0
    for text in (JOB, "day=2/part-0", "3 B", "ready to commit"):
        assert text in command.out

    found = command.json("inspect", tmp_path)
    (job,) = found["parts"]
    assert (found["kind"], job["kind"], found["sound"]) == ("destination", "job", True)
    assert (job["facts"]["files"], job["facts"]["bytes"]) == (3, 11)
    assert {_["dest"] for _ in job["renames"]} == {
        f"file:{tmp_path}/day={name}" for name in ("1/part-0", "2/part-0", "1/part-1")
    }


@pytest.mark.parametrize("below", ["", "_temporary", f"_temporary/{JOB}", f"_temporary/{JOB}/00"])
def test_inspect_finds_the_job_from_every_height(
    command: Command, tmp_path: Path, below: str
) -> None:
    """A job is found from the destination, from ``_temporary``, and from its own directories."""
    prepare(tmp_path)

    found = command.json("inspect", tmp_path / below)

    job = found if found["kind"] == "job" else found["parts"][0]
    assert (found["code"], job["facts"]["job_id"], len(job["tasks"])) == (0, JOB, 2)


def test_inspect_shows_conflicts(command: Command, tmp_path: Path) -> None:
    """What would be refused is a problem, and the exit code says so."""
    attempt = prepare(tmp_path)
    write(tmp_path, {"day=1/part-0": "old"})
    manifests = sorted((attempt / "manifests").iterdir())

    job = command.json("inspect", attempt)
    assert (job["code"], job["sound"]) == (Exit.REFUSED, False)
    assert "day=1/part-0" in job["problems"][0]

    manifest = command.json("inspect", manifests[0])
    assert manifest["code"] == Exit.REFUSED
    assert manifest["problems"] == [f"exists already: {tmp_path}/day=1/part-0"]
    assert command.json("inspect", manifests[1])["code"] == 0


def test_inspect_shows_every_broken_manifest(command: Command, tmp_path: Path) -> None:
    """One manifest that cannot be read does not hide the next."""
    attempt = prepare(tmp_path)
    first, second = sorted((attempt / "manifests").iterdir())
    first.write_text("")
    second.write_text('{"version": 2}')

    job = command.json("inspect", attempt)

    assert job["code"] == Exit.REFUSED
    assert [first.name in _ or second.name in _ for _ in job["problems"]] == [True, True]
    assert command.json("inspect", first)["error"] == "refused"


def test_inspect_lost_file_is_a_problem(command: Command, tmp_path: Path) -> None:
    """A manifest whose file is gone, or has another size, says so."""
    attempt = prepare(tmp_path)
    lost, changed = sorted(attempt.glob("tasks/*0_0/*/part-0"))
    lost.unlink()
    changed.write_text("longer than before")

    found = command.json("inspect", min((attempt / "manifests").iterdir()))

    assert [problem.split(":")[0] for problem in found["problems"]] == [
        "missing",
        "not the committed file of 3 bytes",
    ]


def test_inspect_begun_job_says_by_whom(command: Command, tmp_path: Path) -> None:
    """A job whose commit has begun says when, by whom, why it stopped, and what to type."""
    attempt = cut_short(tmp_path)

    found = command.json("inspect", attempt)

    assert found["code"] == Exit.REFUSED
    assert "by alice@driver-0; it is stopped because of: " in found["problems"][0]
    assert found["problems"][0].endswith(f"asynccommit resume file:{tmp_path} --job-id {JOB}")
    assert (found["facts"]["files"], found["facts"]["done"]) == (3, "1 of 3 files")


def test_inspect_marker_and_summary(command: Command, tmp_path: Path) -> None:
    """``_SUCCESS`` is shown with what it says, beside the jobs or alone; an empty one too."""
    prepare(tmp_path)
    command("commit", tmp_path, "--tasks", "2")

    marker = command.json("inspect", tmp_path / "_SUCCESS")
    assert (marker["kind"], marker["facts"]["job_id"]) == ("success", JOB)
    assert marker["facts"]["files"] == 3
    assert command.json("inspect", tmp_path)["parts"][0]["facts"] == marker["facts"]

    (tmp_path / "_SUCCESS").write_text("")
    assert "classic" in command.json("inspect", tmp_path / "_SUCCESS")["facts"]["committer"]


def test_inspect_reads_what_hadoop_wrote(command: Command) -> None:
    """Hadoop's own manifests, markers and summaries of failed jobs are shown."""
    samples = sorted((Path(__file__).parents[1] / "fixtures/hadoop_manifest").glob("*.json"))

    assert samples
    for sample in samples:
        kind = "manifest" if "task_manifest" in sample.name else "success"
        assert command.json("inspect", sample)["kind"] == kind
        assert command("inspect", sample) == 0


def test_inspect_classic_job_is_named(command: Command, tmp_path: Path) -> None:
    """A job of Hadoop's classic committer is recognised, and not taken for ours."""
    write(tmp_path, {"_temporary/0/_temporary/attempt_1_0/part-0": "x"})

    (job,) = command.json("inspect", tmp_path)["parts"]

    assert "FileOutputCommitter" in job["facts"]["committer"]
    assert command("commit", tmp_path, "--trust-manifests") == Exit.NOT_FOUND
    assert "FileOutputCommitter" in command.err


@pytest.mark.parametrize("name", ["", "nowhere", "empty", "text"])
def test_inspect_nothing_there(command: Command, tmp_path: Path, name: str) -> None:
    """Where no job left anything, inspect says so and ends with its own code."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("hello")

    error = command.json("inspect", tmp_path / name)

    refused = name == "text"
    assert error["code"] == (Exit.REFUSED if refused else Exit.NOT_FOUND)
    assert error["error"] == ("refused" if refused else "not_found")


# --- what is said, and how it ends -------------------------------------------------------------


def test_hostile_names_do_nothing_to_a_terminal(command: Command, tmp_path: Path) -> None:
    """Escapes, markup and turned text in names come out as text."""
    prepare(tmp_path / HOSTILE, ({f"{HOSTILE}/part-[bold]": "x"},))

    for verb in (["inspect"], ["commit", "--dry-run"], ["commit", "--tasks", "1"]):
        assert command(verb[0], tmp_path / HOSTILE, *verb[1:]) == 0
        said = command.out + command.err
        assert not {"\x1b", "\u202e"} & set(said)
        assert "day=\\x1b[31m[red]\\u202e\\n/part-[bold]" in said or "tasks" in verb[-2]


def test_json_tells_hostile_names_exactly(command: Command, tmp_path: Path) -> None:
    """JSON keeps names as they are."""
    prepare(tmp_path, ({f"{HOSTILE}/part": "x"},))

    report = command.json("commit", tmp_path, "--tasks", "1")

    assert report["filenames"] == [f"{tmp_path}/{HOSTILE}/part"]


def test_relative_path_is_from_here(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative destination is one below the current directory."""
    prepare(tmp_path / "table")
    monkeypatch.chdir(tmp_path)

    assert command("commit", "table", "--tasks", "2") == 0
    assert visible(tmp_path / "table")
    assert absolute("a/b:c").path == f"{tmp_path}/a/b:c"
    assert absolute("./..").path == str(tmp_path.parent)


@pytest.mark.parametrize("url", ["ofs://om/table", "http:/x", "file:relative", "", "/a\0b"])
def test_unreadable_url_is_usage(command: Command, url: str) -> None:
    """A URL that has no store, or cannot be read, is a usage error with one message."""
    error = command.json("commit", url, "--trust-manifests")

    assert (error["code"], error["error"]) == (Exit.USAGE, "usage")


def test_secrets_are_not_shown(command: Command) -> None:
    """A signature or a password in a URL is shown nowhere."""
    url = "file:/nowhere?sv=1&sig=TOPSECRET"

    for options in ([], ["--json"], ["--debug"]):
        assert command("inspect", url, *options) == Exit.NOT_FOUND
        assert "sig=***" in command.out + command.err
        assert "TOPSECRET" not in command.out + command.err
    command("commit", "wasb://user:TOPSECRET@h/x?sig=TOPSECRET", "--trust-manifests", "--json")
    assert "TOPSECRET" not in command.out + command.err


def test_usage_errors_are_json_too(command: Command) -> None:
    """What the command line's parser refuses is JSON as well, if that was asked for."""
    for args in (["frob"], ["commit"], ["commit", "x", "--tasks", "many"], []):
        assert command.json(*args)["error"] == "usage"
        assert command(*args) == Exit.USAGE


def test_version(command: Command) -> None:
    """The version is said as text and as JSON."""
    assert command("--version") == 0
    assert command.out == f"asynccommit {__version__}\n"
    found = command.json("--version")
    assert found == {"version": __version__, "schema_version": 1, "code": 0}


def test_debug_shows_where_an_error_comes_from(command: Command, tmp_path: Path) -> None:
    """A traceback is shown if it is asked for, and never otherwise."""
    assert command("inspect", tmp_path / "no") == Exit.NOT_FOUND
    assert command.err.count("\n") == 1
    assert command("inspect", tmp_path / "no", "--debug") == Exit.NOT_FOUND
    assert "Traceback" in command.err


ERRORS = (
    (CommitError("j", "s", ()), Exit.FAILED),
    (ValidationError("j", "s", ()), Exit.FAILED),
    (DeniedError("head", "/x"), Exit.FAILED),
    (RuntimeError("?"), Exit.FAILED),
    (OptionError("?"), Exit.USAGE),
    (UrlError("?"), Exit.USAGE),
    (UnsupportedError("?"), Exit.USAGE),
    (LeaseLostError("j", "s", ()), Exit.FAILED),
    (PreflightError("j", "s", ()), Exit.REFUSED),
    (OwnedError("j", "s", ()), Exit.REFUSED),
    (UnfinishedError("j", "s", (), "?"), Exit.REFUSED),
    (CommittedError("j", "s", ()), Exit.REFUSED),
    (ManifestError("/x", "?"), Exit.REFUSED),
    (CommitUnknownError("j", "s", ()), Exit.UNKNOWN),
    (OutcomeUnknownError("rename", "/x"), Exit.UNKNOWN),
    (NotFoundError("head", "/x"), Exit.NOT_FOUND),
    (KeyboardInterrupt(), Exit.INTERRUPTED),
)


@pytest.mark.parametrize("error, code", ERRORS, ids=lambda value: type(value).__name__)
def test_exit_codes_are_stable(error: BaseException, code: Exit) -> None:
    """Every kind of error has the exit code that scripts rely on."""
    assert exit_code(error) is code
    assert [int(code) for code in Exit] == [0, 1, 2, 3, 4, 5, 130, 141, 143]


def test_interrupt_ends_with_130(tmp_path: Path) -> None:
    """Ctrl-C in the middle of a commit ends with one message, and keeps the job."""
    attempt = prepare(tmp_path, tuple({f"part-{n}": "x"} for n in range(20)))
    rate = "asynccommit.rate=4"
    running = subprocess.Popen(
        [*COMMAND, "commit", str(tmp_path), "--tasks", "20", "-o", rate],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert running.stderr is not None
    assert "20 tasks committed" in running.stderr.readline()
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=30)

    assert running.returncode == Exit.INTERRUPTED
    assert (out, "interrupted" in err, "Traceback" in err) == ("", True, False)
    assert attempt.is_dir()


def test_reader_that_goes_away_is_no_crash(tmp_path: Path) -> None:
    """Output into a pipe that nobody reads ends quietly."""
    prepare(tmp_path)
    read, written = os.pipe()
    os.close(read)
    with os.fdopen(written, "w") as pipe:
        done = subprocess.run(
            [*COMMAND, "inspect", str(tmp_path)], stdout=pipe, stderr=subprocess.PIPE, text=True
        )

    assert (done.returncode, done.stderr) == (Exit.PIPE, "")


def test_a_full_disk_behind_standard_output_is_one_error(tmp_path: Path) -> None:
    """Output that cannot be written ends the command with 1 and one line, not with 120."""
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([*COMMAND, "ls", str(tmp_path), "--json"], stdout=full, check=False)
        shown = subprocess.run(
            [*COMMAND, "status", str(tmp_path)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert done.returncode == Exit.FAILED
    assert shown.returncode == Exit.FAILED
    assert shown.stderr == "error: standard output: No space left on device\n"


COMMAND = (sys.executable, "-c", "import sys; from asynccommit.cli import main; sys.exit(main())")


def test_a_storage_option_without_a_value_is_not_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What stands there may be the secret itself."""
    assert main(["inspect", str(tmp_path), "-s", "hidden"]) == Exit.USAGE
    error = capsys.readouterr().err
    assert "-s has no value: expected -s key=value" in error
    assert "hidden" not in error


def test_verbose_prints_the_log(command: Command, tmp_path: Path) -> None:
    """``-v`` has the steps of a commit on standard error, ``-vv`` more; results are the same."""
    prepare(tmp_path / "one")
    prepare(tmp_path / "two")
    prepare(tmp_path / "three")

    assert command("commit", tmp_path / "one", "--trust-manifests") == 0
    assert "INFO" not in command.err
    assert command("commit", tmp_path / "two", "--trust-manifests", "-v") == 0
    assert f"INFO asynccommit.commit.job.reporting: job {JOB}: committed" in command.err
    assert "INFO" not in command.out
    assert command("commit", tmp_path / "three", "--trust-manifests", "-vv", "--json") == 0
    assert json.loads(command.out)["files"] == 3
    assert not logging.getLogger("asynccommit").isEnabledFor(logging.INFO)


@pytest.mark.parametrize("words", [(), ("status",), ("uploads",), ("uploads", "list")])
def test_short_help(command: Command, words: tuple[str, ...]) -> None:
    """``-h`` is the help of every command."""
    assert command(*words, "-h") == 0
    assert "Usage: " in command.out


def test_shells_complete_commands() -> None:
    """A shell that asks for completions of ``st`` is told ``status``."""
    environment = {
        **os.environ,
        "_ASYNCCOMMIT_COMPLETE": "complete_bash",
        "COMP_WORDS": "asynccommit st",
        "COMP_CWORD": "1",
    }
    program = Path(sys.executable).with_name("asynccommit")
    done = subprocess.run([program], env=environment, capture_output=True, text=True, check=False)

    assert done.stdout.split() == ["status"]
