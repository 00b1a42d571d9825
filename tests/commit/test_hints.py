"""The commands that messages end with."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from asynccommit.commit.hints import command, job_command, quoted
from asynccommit.commit.layouts.file_output import FileLayout
from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.layouts.uploads import MagicLayout, StagingLayout
from asynccommit.options.job import Options
from asynccommit.stores.urls import Address, parse_url


def test_a_job_is_named() -> None:
    """The job id is said, and the attempt if it is not the first."""
    dest = Address("abfs", "c@a.dfs.core.windows.net", "/t")

    assert job_command("resume", Layout(dest, "j")) == f"asynccommit resume {dest} --job-id j"
    assert job_command("abort", Layout(dest, "j", 2), "--rollback") == (
        f"asynccommit abort {dest} --job-id j --attempt 2 --rollback"
    )


def test_jobs_of_file_output_committer() -> None:
    """Until a record says whose a job is, the command has to; afterwards it need not."""
    layout = FileLayout(Address("file", "", "/t"), "job_1_0001")

    assert "--committer file_v1" in job_command("commit", layout, "--dry-run")
    assert "--committer file_v1" in job_command("abort", layout)
    assert "--committer" not in job_command("abort", layout, "--rollback")
    assert "--committer" not in job_command("resume", layout)


@pytest.mark.parametrize("tmp", ["s3://b/tmp dir/alice", "file:/tmp/alice", "s3://b/alice"])
def test_a_staging_job_says_where_it_is(tmp: str) -> None:
    """Committer and place are options, read by the same reader as a user's; magic needs none."""
    dest, place = parse_url("s3://b/t"), parse_url(tmp)
    layout = StagingLayout(dest, "j", committer="partitioned", tmp=place)
    words = shlex.split(job_command("abort", layout, "--rollback"))
    said = dict(word.split("=", 1) for word in words if "=" in word)
    uploads = Options.from_conf(said).uploads

    assert words[:6] == ["asynccommit", "abort", "s3://b/t", "--job-id", "j", "--rollback"]
    assert uploads.committer == "partitioned"
    assert parse_url(str(uploads.staging_path)).child("alice") == place
    assert job_command("resume", MagicLayout(dest, "j")) == "asynccommit resume s3://b/t --job-id j"


def test_a_staging_job_with_its_data_needs_no_place() -> None:
    """There it is looked for anyway."""
    dest = parse_url("s3://b/t")
    layout = StagingLayout(dest, "j", tmp=dest.child("_temporary", "staging", "alice"))

    assert job_command("abort", layout).endswith("--job-id j -o fs.s3a.committer.name=directory")


@pytest.mark.parametrize("name", ["a b", "it's", "$HOME", "ö", "-rf", "a;b", "`x`", "a\\b"])
def test_words_are_quoted(name: str) -> None:
    """What to type goes through a shell unharmed, whatever the table is called."""
    dest = Address("file", "", f"/{name}")

    assert shlex.split(command("status", dest)) == ["asynccommit", "status", f"file:/{name}"]


@pytest.mark.parametrize("word", ["a\x1b[31m\n", "it's\t\\n", "\u202eturned", "\u200b"])
def test_what_cannot_be_seen_is_escaped(word: str) -> None:
    """It is written so that a terminal shows it and bash reads it as it was."""
    text = quoted(word)
    environment = {"LC_ALL": "C.UTF-8"}
    read = subprocess.run(
        ["bash", "-c", f"printf %s {text}"], capture_output=True, check=True, env=environment
    )

    assert text.isprintable()
    assert read.stdout.decode() == word
