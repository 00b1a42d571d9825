"""Which committer a job has: the one that is named, that the options name, or that suits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.commit.by_rename.file_output_v1 import FileV1Committer
from asynccommit.commit.by_rename.file_output_v2 import FileV2Committer
from asynccommit.commit.by_upload.magic import MagicCommitter
from asynccommit.commit.by_upload.staging import DirectoryCommitter, PartitionedCommitter
from asynccommit.commit.errors import CommitterWarning
from asynccommit.commit.job_context import JobContext
from asynccommit.commit.registry import COMMITTERS, Committer, mode_of, open_named
from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.options.job import CLASSIC, Mode, Options, OptionWarning
from asynccommit.options.uploads import NETFLIX, S3A
from asynccommit.stores.base import Store
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.urls import Address
from tests.support.uploads import HOST, new_bucket, store_of

VERSION = CLASSIC + "algorithm.version"
NAME, CONFLICT = S3A + "name", S3A + "staging.conflict-mode"


class FlatStore(LocalStore):
    """A disk that moves the files of a directory one by one, as a flat bucket does."""

    traits = replace(LocalStore.traits, name="flat disk", atomic_directory_rename=False)


def opened(
    name: str | None = None, conf: dict[str, str] | None = None, **changed: Any
) -> Committer:
    """Open a committer on a bucket."""
    store: Store = changed.pop("store", None) or store_of(new_bucket())
    opening = JobContext(
        dest=Address("s3", "data", "/out/t"),
        job_id="j",
        attempt=0,
        store=store,
        options=Options.from_conf(conf or {}),
        host=HOST,
        open_store=lambda place: Wrapped(LocalStore()),
        **changed,
    )
    return open_named(name, opening)


@pytest.mark.parametrize(
    "name, kind",
    [
        ("magic", MagicCommitter),
        ("Directory", DirectoryCommitter),
        ("partitioned", PartitionedCommitter),
        ("staging", DirectoryCommitter),
        (None, MagicCommitter),
    ],
)
def test_named_committers(name: str | None, kind: type) -> None:
    """A name is one of the table, in any case; on a bucket magic is the one that suits."""
    assert type(opened(name)) is kind


@pytest.mark.parametrize("name", ["magic", "directory", "partitioned"])
def test_name_in_the_options(name: str) -> None:
    """Hadoop's key chooses the committer where none is named, and a name beats it."""
    assert opened(conf={NAME: name}).layout.committer == name  # type: ignore[attr-defined]
    assert type(opened("magic", {NAME: name})) is MagicCommitter


def test_options_of_s3a_are_for_uploads() -> None:
    """Where files can be renamed, a name that is for S3 does not count."""
    committer = opened(conf={NAME: "magic"}, store=Wrapped(LocalStore()))

    assert type(committer) is ManifestCommitter


@pytest.mark.parametrize("name", ["magic", "directory", "partitioned"])
def test_uploads_without_uploads(name: str) -> None:
    """A committer of uploads is refused where there are none, with the one to take."""
    with pytest.raises(UnsupportedError, match="use 'manifest'"):
        opened(name, store=Wrapped(LocalStore()))


def test_manifest_on_a_bucket() -> None:
    """The manifest committer needs renames, and says which committers do not."""
    with pytest.raises(UnsupportedError, match="magic"):
        opened("manifest")


@pytest.mark.parametrize(
    "name", ["file", "stocator", "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter"]
)
def test_refused_committers(name: str) -> None:
    """Committers that write no new data here are refused with the reason."""
    with pytest.raises(UnsupportedError, match="is refused"):
        opened(conf={NAME: name})


@pytest.mark.parametrize(
    "name, conf, kind",
    [
        ("file_v1", {}, FileV1Committer),
        ("File_V1", {VERSION: "2"}, FileV1Committer),
        ("file", {}, FileV1Committer),
        ("file", {VERSION: "1"}, FileV1Committer),
        ("org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter", {}, FileV1Committer),
        ("org.apache.parquet.hadoop.ParquetOutputCommitter", {}, FileV1Committer),
    ],
)
def test_file_committers(name: str, conf: dict[str, str], kind: type) -> None:
    """Where directories are renamed FileOutputCommitter has two names, and those of its classes."""
    assert type(opened(name, conf, store=Wrapped(LocalStore()))) is kind


@pytest.mark.parametrize(
    "name, conf",
    [
        ("file_v2", {}),
        ("file", {VERSION: "2"}),
        ("org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter", {VERSION: "2"}),
    ],
)
def test_version_2_is_asked_for_and_warned_of(name: str, conf: dict[str, str]) -> None:
    """Version 2 is had by its name or by Hadoop's option, and says what is unsafe about it."""
    with pytest.warns(CommitterWarning, match="readers see them before the job is committed"):
        assert type(opened(name, conf, store=Wrapped(LocalStore()))) is FileV2Committer


@pytest.mark.parametrize("name", ["file", "file_v1", "file_v2"])
def test_file_committers_on_a_bucket(name: str) -> None:
    """On S3 FileOutputCommitter is refused with the reason, whichever version."""
    with pytest.raises(UnsupportedError, match=f"'{name}' is refused.*S3 copies and deletes"):
        opened(name)


@pytest.mark.parametrize("name", ["file", "file_v1"])
def test_file_committers_without_directories(name: str) -> None:
    """Where no directory is renamed in one step a task could not commit in one."""
    with pytest.raises(UnsupportedError, match=r"rename a directory atomically.*use 'manifest'"):
        opened(name, store=Wrapped(FlatStore()))


@pytest.mark.parametrize("name", [None, "manifest"])
@pytest.mark.parametrize("key", ["algorithm.version", "failures.attempts"])
def test_options_of_the_file_committer_alone(name: str | None, key: str) -> None:
    """An option of FileOutputCommitter warns where another committer is opened."""
    with pytest.warns(OptionWarning, match=f"{CLASSIC}{key} has no effect.*committer 'file'"):
        assert type(opened(name, {CLASSIC + key: "2"}, store=Wrapped(LocalStore()))) is (
            ManifestCommitter
        )


def test_version_3() -> None:
    """There is no third algorithm, with Hadoop's class neither."""
    with pytest.raises(OptionError, match=r"algorithm.version is '3': expected 1"):
        opened("file", {VERSION: "3"}, store=Wrapped(LocalStore()))


def test_unknown_committer() -> None:
    """A name that nobody knows is an error that names the others."""
    with pytest.raises(OptionError, match=r"'magick'.*manifest, magic, directory"):
        opened("magick")


def test_every_name_has_a_class() -> None:
    """Each line of the table can be opened, or says what the store lacks."""
    for name in COMMITTERS.keys() - {"manifest", "file", "file_v1", "file_v2"}:
        assert opened(name).layout.job_id == "j"


@pytest.mark.parametrize(
    "name, conf, mode",
    [
        ("directory", {}, Mode.APPEND),
        ("directory", {CONFLICT: "append"}, Mode.APPEND),
        ("directory", {CONFLICT: "fail"}, Mode.FAIL),
        ("directory", {CONFLICT: "replace"}, Mode.REPLACE_TABLE),
        ("partitioned", {CONFLICT: "replace"}, Mode.REPLACE_PARTITIONS),
        (None, {CONFLICT: "replace", NAME: "partitioned"}, Mode.REPLACE_PARTITIONS),
        ("directory", {NETFLIX + "num-threads": "1"}, Mode.FAIL),
        ("magic", {CONFLICT: "replace"}, Mode.APPEND),
        (None, {CONFLICT: "replace"}, Mode.APPEND),
    ],
)
def test_mode_of_the_options(name: str | None, conf: dict[str, str], mode: Mode) -> None:
    """The conflict mode of the staging committers is the mode of a job that is given none."""
    assert mode_of(Options.from_conf(conf), name) is mode


def test_where_pending_sets_are(tmp_path: Path) -> None:
    """Below the user's name: what was said, what the options say, or beside the data."""
    key = S3A + "staging.tmp.path"
    said = opened("directory", {key: str(tmp_path)}, pending=Address("s3", "data", "/tmp"))

    assert said.layout.job_dir == "/tmp/alice/j"
    assert opened("directory", {key: str(tmp_path)}).layout.job_dir == f"{tmp_path}/alice/j"
    assert opened("directory").layout.job_dir == "/out/t/_temporary/staging/alice/j"


@pytest.mark.parametrize("name", ["magic", "directory"])
def test_etags_without_checksums_where_they_are_wanted(name: str) -> None:
    """Pending files that cannot hold what a completion has to name are refused at once."""
    conf = {"asynccommit.uploads.etags": "strings"}
    with pytest.raises(OptionError, match="checksum=none in the storage"):
        opened(name, conf, store=store_of(new_bucket(), checksum="SHA256"))

    assert opened(name, conf).options.uploads.etags == "strings"
    opened(name, store=store_of(new_bucket(), checksum="SHA256"))
