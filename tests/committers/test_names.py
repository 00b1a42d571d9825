"""Which committer a job has: the one that is named, that the options name, or that suits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from asynccommit.committers import COMMITTERS, Committer, mode_of, open_named
from asynccommit.committers.magic import MagicCommitter
from asynccommit.committers.manifest import ManifestCommitter
from asynccommit.committers.opening import Opening
from asynccommit.committers.staging import DirectoryCommitter, PartitionedCommitter
from asynccommit.errors import OptionError, UnsupportedError
from asynccommit.options import Mode, Options
from asynccommit.store import Store
from asynccommit.stores.local import LocalStore
from asynccommit.upload_options import NETFLIX, S3A
from asynccommit.urls import Address
from asynccommit.wrappers.base import Wrapped
from tests.support.uploads import HOST, new_bucket, store_of

NAME, CONFLICT = S3A + "name", S3A + "staging.conflict-mode"


def opened(
    name: str | None = None, conf: dict[str, str] | None = None, **changed: Any
) -> Committer:
    """Open a committer on a bucket."""
    store: Store = changed.pop("store", None) or store_of(new_bucket())
    opening = Opening(
        dest=Address("s3", "data", "/out/t"),
        job_id="1",
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


def test_unknown_committer() -> None:
    """A name that nobody knows is an error that names the others."""
    with pytest.raises(OptionError, match=r"'magick'.*manifest, magic, directory"):
        opened("magick")


def test_every_name_has_a_class() -> None:
    """Each line of the table can be opened, or says what the store lacks."""
    for name in COMMITTERS.keys() - {"manifest"}:
        assert opened(name).layout.job_id == "1"


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

    assert said.layout.job_dir == "/tmp/alice/1"
    assert opened("directory", {key: str(tmp_path)}).layout.job_dir == f"{tmp_path}/alice/1"
    assert opened("directory").layout.job_dir == "/out/t/_temporary/staging/alice/1"


@pytest.mark.parametrize("name", ["magic", "directory"])
def test_etags_without_checksums_where_they_are_wanted(name: str) -> None:
    """Pending files that cannot hold what a completion has to name are refused at once."""
    conf = {"asynccommit.uploads.etags": "strings"}
    with pytest.raises(OptionError, match="checksum=none among the storage"):
        opened(name, conf, store=store_of(new_bucket(), checksum="SHA256"))

    assert opened(name, conf).options.uploads.etags == "strings"
    opened(name, store=store_of(new_bucket(), checksum="SHA256"))
