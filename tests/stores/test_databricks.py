"""Paths that Databricks maps to objects of a cloud are refused by name."""

from __future__ import annotations

import random

import pytest

from asynccommit.errors import UnsupportedError
from asynccommit.spark.hadoop_store.opening import look_at
from asynccommit.stores.databricks import VARIABLE
from asynccommit.stores.registry import StoreSettings, open_store
from asynccommit.stores.urls import parse_url

VOLUME = "/Volumes/main/default/files/table"


def _open(place: str) -> None:
    open_store(parse_url(place), StoreSettings(random.Random(0)))


@pytest.mark.parametrize("place", [VOLUME, f"file:{VOLUME}", "/dbfs/mnt/table", "/dbfs"])
def test_mapped_paths_are_refused_on_a_cluster(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing says what their renames do; elsewhere they are a disk's."""
    monkeypatch.delenv(VARIABLE, raising=False)
    _open(place)

    monkeypatch.setenv(VARIABLE, "17.3")
    _open("/local_disk0/Volumes/table")
    with pytest.raises(UnsupportedError, match=r"mapped by Databricks .* external volume"):
        _open(place)


@pytest.mark.parametrize("place", [f"dbfs:{VOLUME}", "dbfs:/table"])
def test_the_scheme_is_refused_everywhere(place: str) -> None:
    """The error names the URLs to write to, and no directory to mount."""
    with pytest.raises(UnsupportedError, match=r"mapped by Databricks .*abfss://, s3://, gs://"):
        _open(place)


def test_the_jvm_opens_none_either() -> None:
    """A session leaves such a destination to Spark's own committer, or refuses it, by option."""
    with pytest.raises(UnsupportedError, match="mapped by Databricks"):
        look_at(parse_url("dbfs:/table"))
