"""The ``_SUCCESS`` of a job whose files were uploads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from asynccommit.errors import ManifestError
from asynccommit.formats.success import (
    MAX_FILENAMES,
    SuccessData,
    decode_success,
    encode_s3a_success,
)

SAMPLES = sorted((Path(__file__).parent.parent / "fixtures").glob("s3a_v2_*/_SUCCESS"))


def marker(committer: str = "magic", **fields: Any) -> SuccessData:
    """Return what a job says of itself."""
    return SuccessData(1_700_000_000_000, True, "host", committer, "uuid", "JobID", **fields)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.parent.name)
def test_samples_of_hadoop_load(sample: Path) -> None:
    """A marker of Hadoop's magic committer is read."""
    data = decode_success(sample.read_bytes(), str(sample))

    assert (data.committer, data.job_id) == ("magic", "0b0a7b3e-job-uuid")
    assert data.job_id_source == "spark.sql.sources.writeJobUUID"
    assert data.filenames == ["/results/latest/year=2024/part-00000.parquet"]
    assert data.metrics == {"files_created": 1}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.parent.name)
def test_samples_of_hadoop_are_written_alike(sample: Path) -> None:
    """What is read is written with the same values; only the date for people has another look."""
    value = json.loads(sample.read_bytes())
    written = json.loads(encode_s3a_success(decode_success(sample.read_bytes(), str(sample))))
    said = {key: item for key, item in value.items() if item is not None}

    assert written | {"date": ""} == said | {"date": ""}


def test_filenames_are_absolute_keys() -> None:
    """Keys and paths look the same in the marker, and a hundred of them are enough."""
    names = ["out/a", "/out/b", *(f"out/{n}" for n in range(200))]
    data = decode_success(encode_s3a_success(marker(filenames=names)), "_SUCCESS")

    assert data.filenames[:2] == ["/out/a", "/out/b"]
    assert len(data.filenames) == MAX_FILENAMES


@pytest.mark.parametrize("committer", ["magic", "directory", "partitioned"])
def test_committers(committer: str) -> None:
    """The three names of S3A's committers are those that tools compare with."""
    data = marker(committer)

    assert decode_success(encode_s3a_success(data), "_SUCCESS").committer == committer


def test_another_committer() -> None:
    """A name that no tool knows is refused."""
    with pytest.raises(ManifestError, match="committer is 'file': expected one of directory, m"):
        encode_s3a_success(marker("file"))
