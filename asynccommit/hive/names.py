"""Names of files as Hive's tasks give them: ``000003_1.gz`` is what attempt 1 of task 3 wrote.

Hive tells by them which files of a directory are several attempts of one task, and keeps one. How
it reads a name, and which attempt stays, has changed: see ``HiveRules``. A name is read here in one
pass, because Hive's regular expressions are quadratic on hostile names.

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
_WIDTH = 6  # digits of a task: with 2026_01.csv and 2026_02.csv somebody means months
_LINE_ENDS = re.compile("[\n\r\x85\u2028\u2029]")  # no "." of a Java expression matches one
_SPARKS = re.compile("part-[0-9]+-")
_BEFORE = re.compile(r"(?:tmp_|attempt_[0-9]{1,20}_[0-9]{1,10}_[mr]_)?\Z")


class HiveRules(Enum):
    """Whose rules: which of several attempts of one task stays.

    ``TWO``, up to Hive 2.3, keeps the largest; of two as large, the one whose name comes first.
    ``THREE`` keeps the newest attempt, and is at a loss if that is smaller than an older one.
    ``FOUR`` keeps the newest attempt. Of two files of the same attempt both know no winner.
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
    """The parts of a name, which one after the other are the name.

    Attributes:
        before: what is no part of the id: ``tmp_``.
        prefix: of the id: ``(ds%3D1)``.
        task: the digits of the id: ``000003``.
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
        """What all attempts of the task have in common."""
        return self.prefix + self.task

    @property
    def number(self) -> int:
        """The number of the attempt; -1 without one."""
        return int(self.attempt[1:] or -1)

    @property
    def is_foreign(self) -> bool:
        """Whether Hive gives no such name: the number is in the middle of it, or not as wide."""
        return _BEFORE.match(self.before) is None or len(self.task) != _WIDTH

    def of_task(self, task: int) -> str:
        """Return the name with another task, as wide as this one at least."""
        return "".join(self._replace(task=str(task).zfill(len(self.task))))


def parse_name(name: str, rules: HiveRules = HiveRules.TWO) -> HiveName | None:
    """Read a file's name; ``None`` where there is no task in it, and so nothing to compare.

    Two names that Hive 2.3 reads otherwise: of ``000000_0_copy_1`` it takes ``1`` for the task,
    and of ``(ds=1.5)000002_3`` at times the ``1`` of the date.

    Args:
        name: without its directory.
        rules: how long the number of an attempt may be.
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
    """Return where the id begins, and its digits: the leftmost reading, with a prefix if any."""
    opened = name.find("(")
    if 0 <= opened < runs[0].start():
        for run in reversed(runs):
            if name[run.start() - 1] == ")" and run.start() - 1 > opened:
                return opened, run
    return runs[0].start(), runs[0]


def is_copy(name: str) -> bool:
    """Whether a file was added beside others, and so is nobody's second attempt.

    Wider than Hive 2.3, which takes ``000000_0_copy_1.gz`` for an attempt, and deletes it.
    """
    return _COPY.search(name) is not None


def is_spark(name: str) -> bool:
    """Whether a name looks like Spark's, in which the rules find ids that mean nothing."""
    return _SPARKS.match(name) is not None


def is_temporary(name: str) -> bool:
    """Whether a file or directory is one that Hive had not finished."""
    return name.startswith((_TEMP, _TASK_TEMP))


def is_hidden(name: str) -> bool:
    """Whether Hive's readers pass a name over."""
    return name.startswith(("_", "."))


def replace_task(name: str, task: int, rules: HiveRules = HiveRules.TWO) -> str:
    """Return the name that another task would give such a file, as wide at least.

    Raises:
        ManifestError: there is no task in it.
    """
    found = parse_name(name, rules)
    if found is None:
        raise ManifestError(name, "is no name that a task of Hive gives: it has no number")
    return found.of_task(task)


def split_copy(name: str) -> tuple[str, int]:
    """Return a file's name as that of the first of its copies, and which copy it is; 0 for none."""
    copied = _COPY.search(name)
    if copied is None:
        return name, 0
    number = copied[0].removeprefix("_copy_")
    first = name[: copied.start()] + name[copied.end() :]
    return first, int(number) if len(number) <= _COPY_DIGITS else 0


def next_copy(name: str, number: int) -> str:
    """Return the name of a file that is added beside others as the so many-th copy.

    Args:
        name: that another file has.
        number: from 1 to 999,999.
    """
    copied = _COPY.search(name)
    if copied is not None:
        return f"{name[: copied.start()]}_copy_{number}{name[copied.end() :]}"
    found = parse_name(name)
    end = len(name) - len(found.extension) if found else (name + ".").index(".")
    return f"{name[:end]}_copy_{number}{name[end:]}"


def temporary_path(path: str) -> str:
    """Return where the files of tasks are until they are published at ``path``: ``_tmp.X``."""
    return _beside(path, _TEMP)


def task_temporary_path(path: str) -> str:
    """Return where tasks write what will be at ``path``: ``_task_tmp.X``."""
    return _beside(path, _TASK_TEMP)


def _beside(path: str, prefix: str) -> str:
    folder, slash, name = path.rpartition("/")
    return path if name.startswith(prefix) else f"{folder}{slash}{prefix}{name}"


class HiveAttempt(NamedTuple):
    """One of several files of one task: its name, and its size in bytes."""

    name: str
    size: int


def winner_of(attempts: Sequence[HiveAttempt], rules: HiveRules) -> HiveAttempt:
    """Return which of several files of one task stays.

    Args:
        attempts: at least one, in any order; none is a copy.
        rules: whose.

    Raises:
        ManifestError: the rules know no winner.
    """
    if rules is HiveRules.TWO:
        return min(attempts, key=lambda one: (-one.size, one.name))
    ordered = sorted(attempts, key=lambda one: (_number(one.name, rules), one.name))
    for older, newer in pairwise(ordered):
        if _number(older.name, rules) == _number(newer.name, rules):
            raise ManifestError(newer.name, f"is of the same attempt as {older.name}")
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
