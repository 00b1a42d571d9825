"""Well-known committers that write no new data here, each with the reason.

FileOutputCommitter is among them on stores that do not rename directories, such as S3; see
``is_classic``.

Names are those of ``fs.s3a.committer.name``, and of classes as given to Spark and Hadoop, for
example under ``spark.sql.parquet.output.committer.class``. Sources: Hadoop 3.5.0's documentation
of its S3A committers; SPARK-9899 and SPARK-10063 on direct committers; Stocator's own sources; the
release guide of Amazon EMR on its committer for S3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from asynccommit.errors import UnsupportedError

_INSTEAD = "Use 'magic' or 'staging' on stores with uploads, and 'manifest' on stores with renames."

_REASONS = {
    "file": (
        "FileOutputCommitter needs fast renames: S3 copies and deletes each file, readers see "
        "parts of a job, and version 2 shows the output of jobs that fail."
    ),
    "direct": (
        "direct committers write to the final place: a second attempt of a task, or a job that "
        "fails, leaves duplicate or partial files that look like valid data. Spark removed its "
        "own for that reason (SPARK-10063)."
    ),
    "stocator": (
        "Stocator writes every attempt of a task to the final place under its own name, and "
        "readers take the largest: readers without Stocator see all of them, and the largest "
        "need not be the committed one. Its tables can be listed and repaired: see "
        "asynccommit.stocator.resolve."
    ),
    "emrfs": (
        "Amazon EMR's committer exists only on EMR, and completes the uploads of a task when "
        "the task commits: readers see the output of jobs that are running or fail."
    ),
}
REFUSED: Mapping[str, str] = {name: f"{why} {_INSTEAD}" for name, why in _REASONS.items()}
"""Name in lower case -> why it is refused, and what there is instead."""

_NO_LETTER = re.compile("[^a-z0-9]+")
# Of the last part of a class name, in lower case without other signs; the first that fits counts.
_CLASSES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile("direct(?!ory)[a-z0-9]*(outputcommitter|committerfactory)"), "direct"),
    (re.compile("stocator|objectstorefilesystem|objectstorevisitor"), "stocator"),
    (re.compile("emroptimized[a-z0-9]*|filesystemoptimizedcommitter"), "emrfs"),
    (
        re.compile(
            "filev[12]|(parquet)?fileoutputcommitter(v[12]|factory)?|parquetoutputcommitter"
        ),
        "file",
    ),
)


def why_refused(name: str) -> str | None:
    """Return why a committer writes no new data here, or ``None``.

    Args:
        name: a name in ``REFUSED`` or of a class, with or without its packages; in any case.
    """
    kind = _kind(name)
    return None if kind is None else REFUSED[kind]


def is_classic(name: str) -> bool:
    """Return whether a name, also of a class, is that of FileOutputCommitter."""
    return _kind(name) == "file"


def _kind(name: str) -> str | None:
    plain = name.strip().lower()
    if plain in REFUSED:
        return plain
    last = _NO_LETTER.sub("", re.split(r"[.$]", plain)[-1])
    for pattern, kind in _CLASSES:
        if pattern.fullmatch(last):
            return kind
    return "stocator" if plain.startswith("com.ibm.stocator.") else None


def refuse(name: str) -> None:
    """Raise an error if ``name`` is that of an unsupported committer.

    Raises:
        UnsupportedError: gives the reason and the alternative.
    """
    reason = why_refused(name)
    if reason is not None:
        raise UnsupportedError(f"the committer {name.strip()[:200]!r} is refused: {reason}")
