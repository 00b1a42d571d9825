"""Read the files beside the markers in a job's staging directory.

``<staging>/<user>/.staging/<job id>/`` holds ``job.xml`` (the whole configuration of the job, which
tells where it writes and whether its commit may be repeated), and a history file for each attempt
of the application master, ``<job id>_<attempt>.jhist``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from xml.parsers.expat import ExpatError, ParserCreate

from asynccommit.errors import ManifestError

JOB_XML = "job.xml"
STAGING = ".staging"
MAX_JOB_XML = 8 * 1024 * 1024
"""Maximum number of bytes to read; a real file has about 200 kB."""

NAME = "mapreduce.job.name"
OUTPUT = "mapreduce.output.fileoutputformat.outputdir"
ALGORITHM = "mapreduce.fileoutputcommitter.algorithm.version"
REDUCES = "mapreduce.job.reduces"
NEW_MAPPER = "mapred.mapper.new-api"
NEW_REDUCER = "mapred.reducer.new-api"
OLD_COMMITTER = "mapred.output.committer.class"
OUTPUT_FORMAT = "mapreduce.job.outputformat.class"
FACTORY = "mapreduce.outputcommitter.factory.class"
FACTORY_OF_SCHEME = "mapreduce.outputcommitter.factory.scheme."

_WANTED = {
    *(NAME, OUTPUT, ALGORITHM, REDUCES, NEW_MAPPER, NEW_REDUCER),
    *(OLD_COMMITTER, OUTPUT_FORMAT, FACTORY),
}
_JOB_ID = re.compile(r"job_[0-9A-Za-z]{1,40}_[0-9]{4,10}", re.ASCII)
_HISTORY = re.compile(r"(job_[0-9A-Za-z]{1,40}_[0-9]{4,10})_([0-9]{1,6})\.jhist", re.ASCII)
_MAX_VALUE = 10_000
_LIB = "org.apache.hadoop.mapreduce.lib.output"
_OF_FILES = {
    f"{_LIB}.{name}OutputFormat"
    for name in ("File", "Map", "SequenceFile", "SequenceFileAsBinary", "Text")
}
_OLD_FILE = "org.apache.hadoop.mapred.FileOutputCommitter"
_FILE_FACTORY = f"{_LIB}.FileOutputCommitterFactory"
_NEVER = {
    f"{_LIB}.committer.manifest.ManifestCommitterFactory",
    "org.apache.hadoop.fs.azurebfs.commit.AzureManifestCommitterFactory",
}


@dataclass(frozen=True, slots=True)
class JobConf:
    """The commit-related settings of a job's configuration.

    Attributes:
        name: name of the job; may be empty.
        output: destination as given by the job; may be empty.
        committer: ``FileOutputCommitter v1``, or a class name; empty if unknown.
        repeatable: whether the commit may be repeated; ``None`` if unknown.
    """

    name: str = ""
    output: str = ""
    committer: str = ""
    repeatable: bool | None = None


def is_job_id(name: str) -> bool:
    """Return whether the name of a directory is a job id."""
    return _JOB_ID.fullmatch(name) is not None


def attempts_of(job_id: str, names: Iterable[str]) -> int:
    """Return the last attempt that has a history file; 0 if there is none."""
    found = filter(None, map(_HISTORY.fullmatch, names))
    return max((int(one[2]) for one in found if one[1] == job_id), default=0)


def decode_job_xml(data: bytes, path: str) -> JobConf:
    """Read the commit-related settings of a ``job.xml``.

    Raises ``ManifestError`` for invalid content, and for a file that declares a document type: with
    one, a few bytes can expand to gigabytes.
    """
    reader = _ConfigurationReader(path)
    parser = ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = reader.begin
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = reader.refuse
    try:
        parser.Parse(data, True)
    except ExpatError as error:
        raise ManifestError(path, f"not valid XML: {error}") from None
    return job_conf(reader.values)


class _ConfigurationReader:
    """A parser that collects the requested values of a configuration."""

    def __init__(self, path: str) -> None:
        self.values: dict[str, str] = {}
        self._path = path
        self._open: list[str] = []
        self._name = ""
        self._text = ""

    def refuse(self, *_: object) -> None:
        raise ManifestError(
            self._path, "declares a document type, which Hadoop's job.xml never does"
        )

    def begin(self, tag: str, _: Mapping[str, str]) -> None:
        if not self._open and tag != "configuration":
            raise ManifestError(self._path, f"is not a Hadoop configuration: <{tag[:100]}>")
        if len(self._open) > 10:
            raise ManifestError(self._path, "is nested deeper than any Hadoop configuration")
        self._open.append(tag)
        self._text = ""
        if tag == "property":
            self._name = ""

    def text(self, data: str) -> None:
        if len(self._text) <= _MAX_VALUE:
            self._text += data[: _MAX_VALUE + 1]

    def end(self, tag: str) -> None:
        self._open.pop()
        if tag == "name":
            self._name = self._text.strip()
        elif tag == "value" and len(self._text) <= _MAX_VALUE and _is_wanted(self._name):
            self.values[self._name] = self._text.strip()


def _is_wanted(name: str) -> bool:
    return name in _WANTED or (name.startswith(FACTORY_OF_SCHEME) and len(name) < 100)


def job_conf(values: Mapping[str, str]) -> JobConf:
    """Return the commit settings in a configuration.

    A value that contains a variable counts as unknown.
    """
    constants = {key: value for key, value in values.items() if "${" not in value}
    committer, repeatable = _committer(constants)
    return JobConf(constants.get(NAME, ""), constants.get(OUTPUT, ""), committer, repeatable)


def _committer(values: Mapping[str, str]) -> tuple[str, bool | None]:
    reduces = values.get(REDUCES, "1")
    which = NEW_MAPPER if reduces == "0" else NEW_REDUCER
    if values.get(which, "false").lower() != "true":
        name = values.get(OLD_COMMITTER, _OLD_FILE)
        return _file(values) if name == _OLD_FILE else (name, None)
    if OUTPUT_FORMAT in values and values[OUTPUT_FORMAT] not in _OF_FILES:
        return f"that of {values[OUTPUT_FORMAT]}", None
    scheme = values.get(OUTPUT, "").partition(":")[0]
    factory = values.get(FACTORY) or values.get(f"{FACTORY_OF_SCHEME}{scheme}", _FILE_FACTORY)
    if factory == _FILE_FACTORY:
        return _file(values)
    return f"that of {factory}", False if factory in _NEVER else None


def _file(values: Mapping[str, str]) -> tuple[str, bool | None]:
    version = values.get(ALGORITHM, "")
    if version not in ("1", "2"):
        return "FileOutputCommitter", None
    return f"FileOutputCommitter v{version}", version == "2"
