"""Parse the file names of Hive's tasks.

``000003_1.gz`` is the output of attempt 1 of task 3.

By these names Hive recognizes several attempts of one task in a directory, and keeps one. The way
it parses a name, and the attempt that it keeps, have changed over time: see ``HiveRules``. A name
is parsed here in one pass, because Hive's regular expressions are quadratic on hostile names.

Source: ``Utilities`` of Hive 2.3.10, observed; the releases before and after it, documented.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

from asynccommit.errors import ManifestError

_TEMP, _TASK_TEMP = "_tmp.", "_task_tmp."

_DIGITS = re.compile("[0-9]+")
_COPY = re.compile(r"_copy_(?:[0-9]{1,6}|[0-9a-fA-F]{16})(?=\.|\Z)")
_COPY_DIGITS = 6
_WIDTH = 6  # digits of a task; 2026_01.csv and 2026_02.csv contain months
_LINE_ENDS = re.compile("[\n\r\x85\u2028\u2029]")  # not matched by "." in Java
_SPARKS = re.compile("part-[0-9]+-")
_BEFORE = re.compile(r"(?:tmp_|attempt_[0-9]{1,20}_[0-9]{1,10}_[mr]_)?\Z")


class HiveRules(Enum):
    """The rules of a Hive version for choosing among attempts of a task.

    ``TWO``, up to Hive 2.3, keeps the largest; of equal ones, the one whose name sorts first.
    ``THREE`` keeps the newest attempt, and fails if it is smaller than an older one. ``FOUR`` keeps
    the newest attempt. ``THREE`` and ``FOUR`` do not decide between two files of the same attempt.
    """

    TWO = "2"
    THREE = "3"
    FOUR = "4"


# The newest Hive has attempts of up to ten digits.
_ATTEMPT = {
    HiveRules.TWO: re.compile(r"(?:_[0-9]{1,6})?(?=\.|\Z)"),
    HiveRules.THREE: re.compile(r"(?:_[0-9]{1,6})?(?=\.|\Z)"),
    HiveRules.FOUR: re.compile(r"(?:_[0-9]{1,10})?(?=\.|\Z)"),
}


class HiveName(NamedTuple):
    """The parts of a name, which concatenated are the name.

    Attributes:
        before: prefix outside the id: ``tmp_``.
        prefix: prefix within the id: ``(ds%3D1)``.
        task: digits of the id: ``000003``.
        attempt: ``_1``, or empty.
        copy: ``_copy_2``, of a file that a later statement added beside others; or empty.
        extension: ``.gz``, or empty.
    """

    before: str
    prefix: str
    task: str
    attempt: str
    copy: str
    extension: str

    @property
    def id(self) -> str:
        """The id that all attempts of the task share."""
        return self.prefix + self.task

    @property
    def number(self) -> int:
        """The number of the attempt; -1 without one."""
        return int(self.attempt[1:] or -1)

    @property
    def is_foreign(self) -> bool:
        """Return whether Hive would not create such a name.

        That is so if the number is in the middle of it, or shorter than Hive's.
        """
        return _BEFORE.match(self.before) is None or len(self.task) != _WIDTH

    def of_task(self, task: int) -> str:
        """Return the name with another task, padded to at least the same width."""
        return "".join(self._replace(task=str(task).zfill(len(self.task))))


def parse_name(name: str, rules: HiveRules = HiveRules.TWO) -> HiveName | None:
    """Parse a file's name; ``None`` if it contains no task.

    Hive 2.3 parses two kinds of names differently: in ``000000_0_copy_1`` it takes ``1`` for the
    task, and in ``(ds=1.5)000002_3`` sometimes the ``1`` of the date.

    Args:
        name: name without directory.
        rules: determines the maximum length of an attempt number.
    """
    if _LINE_ENDS.search(name):
        return None
    plain, copy, copied = name, "", _COPY.search(name)
    if copied is not None:
        copy, plain = copied[0], name[: copied.start()] + name[copied.end() :]
    fits = _ATTEMPT[rules].match
    runs = [run for run in _DIGITS.finditer(plain) if fits(plain, run.end())]
    if not runs:
        return None
    start, run = _start(plain, runs)
    attempt = fits(plain, run.end())
    assert attempt is not None  # it is one of those that fit
    return HiveName(
        plain[:start], plain[start : run.start()], run[0], attempt[0], copy, plain[attempt.end() :]
    )


def _start(name: str, runs: Sequence[re.Match[str]]) -> tuple[int, re.Match[str]]:
    """Return the start of the id, and its digits.

    It is the leftmost match, with a prefix if there is one.
    """
    opened = name.find("(")
    if 0 <= opened < runs[0].start():
        for run in reversed(runs):
            if name[run.start() - 1] == ")" and run.start() - 1 > opened:
                return opened, run
    return runs[0].start(), runs[0]


def is_copy(name: str) -> bool:
    """Return whether a file is a copy, added beside others, not an attempt.

    This accepts more than Hive 2.3, which takes ``000000_0_copy_1.gz`` for an attempt and deletes
    it.
    """
    return _COPY.search(name) is not None


def is_spark(name: str) -> bool:
    """Return whether a name looks like Spark's; ids found in it mean nothing."""
    return _SPARKS.match(name) is not None


def is_temporary(name: str) -> bool:
    """Return whether a file or directory is an unfinished one of Hive's."""
    return name.startswith((_TEMP, _TASK_TEMP))


def is_hidden(name: str) -> bool:
    """Return whether Hive's readers ignore a name."""
    return name.startswith(("_", "."))


def replace_task(name: str, task: int, rules: HiveRules = HiveRules.TWO) -> str:
    """Return the name that another task would give such a file, at least as wide.

    Raises:
        ManifestError: the name contains no task.
    """
    found = parse_name(name, rules)
    if found is None:
        raise ManifestError(name, "is not the name of a Hive task file: it has no number")
    return found.of_task(task)


def split_copy(name: str) -> tuple[str, int]:
    """Return the original's name and the copy number of a file; 0 if no copy."""
    copied = _COPY.search(name)
    if copied is None:
        return name, 0
    number = copied[0].removeprefix("_copy_")
    first = name[: copied.start()] + name[copied.end() :]
    return first, int(number) if len(number) <= _COPY_DIGITS else 0


def next_copy(name: str, number: int) -> str:
    """Return the name of the n-th copy of a file, added beside others.

    Args:
        name: name of the existing file.
        number: from 1 to 999,999.
    """
    copied = _COPY.search(name)
    if copied is not None:
        return f"{name[: copied.start()]}_copy_{number}{name[copied.end() :]}"
    found = parse_name(name)
    end = len(name) - len(found.extension) if found else (name + ".").index(".")
    return f"{name[:end]}_copy_{number}{name[end:]}"


def temporary_path(path: str) -> str:
    """Return the path of task files until published at ``path``: ``_tmp.X``."""
    return _beside(path, _TEMP)


def task_temporary_path(path: str) -> str:
    """Return the path where tasks write ``path``'s files: ``_task_tmp.X``."""
    return _beside(path, _TASK_TEMP)


def _beside(path: str, prefix: str) -> str:
    folder, slash, name = path.rpartition("/")
    return path if name.startswith(prefix) else f"{folder}{slash}{prefix}{name}"


class HiveAttempt(NamedTuple):
    """A file among several of one task: its name, and its size in bytes."""

    name: str
    size: int


def winner_of(attempts: Sequence[HiveAttempt], rules: HiveRules) -> HiveAttempt:
    """Return the file to keep of several files of one task.

    Args:
        attempts: at least one, in any order, no copies.
        rules: rules of a Hive version.

    Raises:
        ManifestError: the rules do not decide a winner.
    """
    if rules is HiveRules.TWO:
        return min(attempts, key=lambda one: (-one.size, one.name))
    ordered = sorted(attempts, key=lambda one: (_number(one.name, rules), one.name))
    for older, newer in pairwise(ordered):
        if _number(older.name, rules) == _number(newer.name, rules):
            raise ManifestError(newer.name, f"belongs to the same attempt as {older.name}")
        if rules is HiveRules.THREE and newer.size < older.size:
            raise ManifestError(
                newer.name,
                f"is the newer attempt and smaller than {older.name}: {newer.size} bytes, "
                f"not {older.size}",
            )
    return ordered[-1]


def _number(name: str, rules: HiveRules) -> int:
    found = parse_name(name, rules)
    return -1 if found is None else found.number
