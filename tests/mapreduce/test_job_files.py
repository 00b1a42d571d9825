"""What a job's staging directory says of the job: its id, its attempts, its configuration."""

from __future__ import annotations

from collections.abc import Mapping
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import ManifestError
from asynccommit.mapreduce.job_files import (
    ALGORITHM,
    FACTORY,
    FACTORY_OF_SCHEME,
    NAME,
    NEW_MAPPER,
    NEW_REDUCER,
    OLD_COMMITTER,
    OUTPUT,
    OUTPUT_FORMAT,
    REDUCES,
    JobConf,
    attempts_of,
    decode_job_xml,
    is_job_id,
    job_conf,
)

LIB = "org.apache.hadoop.mapreduce.lib.output"
FILES = f"{LIB}.FileOutputCommitterFactory"
NEW = {NEW_MAPPER: "true", REDUCES: "0"}
V1, V2 = {ALGORITHM: "1"}, {ALGORITHM: "2"}


def job_xml(conf: Mapping[str, str]) -> bytes:
    """Return a ``job.xml`` with these keys, as Hadoop writes one."""
    rows = "".join(
        f"<property><name>{escape(key)}</name><value>{escape(value)}</value>"
        "<final>false</final><source>job.xml</source></property>\n"
        for key, value in conf.items()
    )
    head = '<?xml version="1.0" encoding="UTF-8" standalone="no"?>'
    return f"{head}<configuration>\n{rows}</configuration>".encode()


@pytest.mark.parametrize(
    "name, known",
    [
        ("job_1700000000000_0007", True),
        ("job_1700000000000_123456", True),
        ("job_local1234_0001", True),
        ("job_1700000000000_7", False),
        ("job_1700000000000_0007.bak", False),
        ("..", False),
        ("task_1700000000000_0007", False),
    ],
)
def test_job_ids(name: str, known: bool) -> None:
    """Only a directory that is called as a job is one's."""
    assert is_job_id(name) is known


def test_attempts() -> None:
    """The histories tell the last attempt; another job's tell nothing."""
    names = ["job_1_0007_1.jhist", "job_1_0007_3.jhist", "job_1_0008_9.jhist", "job_1_0007_1.xml"]

    assert attempts_of("job_1_0007", names) == 3
    assert attempts_of("job_1_0009", names) == 0


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])))
def test_a_configuration(name: str) -> None:
    """Of a configuration the wanted values are read, whatever else is in it."""
    conf = {"fs.s3a.secret.key": "hidden", NAME: name, OUTPUT: "hdfs://n/out", **NEW, **V2}
    found = decode_job_xml(job_xml(conf), "job.xml")

    variable = "${" in name
    assert found == JobConf(
        "" if variable else name.strip(), "hdfs://n/out", "FileOutputCommitter v2", True
    )


@pytest.mark.parametrize(
    "conf, committer, repeatable",
    [
        ({**NEW, **V1}, "FileOutputCommitter v1", False),
        ({**NEW, **V2}, "FileOutputCommitter v2", True),
        (NEW, "FileOutputCommitter", None),
        ({**NEW, ALGORITHM: "3"}, "FileOutputCommitter", None),
        (V1, "FileOutputCommitter v1", False),
        ({OLD_COMMITTER: "a.B", **V2}, "a.B", None),
        ({NEW_REDUCER: "true", OLD_COMMITTER: "a.B", **V2}, "FileOutputCommitter v2", True),
        ({NEW_MAPPER: "true", OLD_COMMITTER: "a.B", **V2}, "a.B", None),
        ({**NEW, **V2, OUTPUT_FORMAT: f"{LIB}.TextOutputFormat"}, "FileOutputCommitter v2", True),
        ({**NEW, **V2, OUTPUT_FORMAT: "a.Format"}, "that of a.Format", None),
        ({**NEW, **V2, FACTORY: "a.Factory"}, "that of a.Factory", None),
        ({**NEW, **V2, FACTORY: FILES}, "FileOutputCommitter v2", True),
        (
            {
                **NEW,
                **V2,
                OUTPUT: "gs://b/out",
                f"{FACTORY_OF_SCHEME}gs": f"{LIB}.committer.manifest.ManifestCommitterFactory",
            },
            f"that of {LIB}.committer.manifest.ManifestCommitterFactory",
            False,
        ),
        ({**NEW, ALGORITHM: "${version}"}, "FileOutputCommitter", None),
    ],
)  # fmt: skip
def test_whose_commit_may_be_repeated(
    conf: Mapping[str, str], committer: str, repeatable: bool | None
) -> None:
    """The committer is told from the configuration as Hadoop chooses it, or nothing is said."""
    found = job_conf(conf)

    assert (found.committer, found.repeatable) == (committer, repeatable)


BOMB = b'<?xml version="1.0"?><!DOCTYPE c [<!ENTITY a "aaaa">]><configuration>&a;</configuration>'


@pytest.mark.parametrize(
    "data, text",
    [
        (b"", "not valid XML"),
        (b"\xff\xfe\x00", "not valid XML"),
        (b"<configuration>", "not valid XML"),
        (b"<html></html>", "not a Hadoop configuration"),
        (b"<configuration>" + b"<a>" * 100, "nested deeper"),
        (BOMB, "declares a document type"),
    ],
)
def test_what_is_no_configuration(data: bytes, text: str) -> None:
    """Anything else is refused, and the file is named."""
    with pytest.raises(ManifestError, match=f"^/s/job.xml: .*{text}"):
        decode_job_xml(data, "/s/job.xml")


def test_a_value_of_any_length_takes_no_memory() -> None:
    """A value that is longer than any that is wanted counts as none."""
    assert decode_job_xml(job_xml({NAME: "x" * 100_000, **V1}), "x").name == ""
