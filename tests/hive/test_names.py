"""Names of files as Hive's tasks give them, and which of several attempts stays."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import ManifestError
from asynccommit.hive.names import (
    HiveAttempt,
    HiveName,
    HiveRules,
    is_copy,
    is_hidden,
    is_spark,
    is_temporary,
    next_copy,
    parse_name,
    replace_task,
    split_copy,
    task_temporary_path,
    temporary_path,
    winner_of,
)

LINE_ENDS = "\n\r\x85\u2028\u2029"
LONG = 200_000

tasks = st.from_regex(r"[0-9]{1,8}", fullmatch=True)
attempts = st.one_of(st.just(""), st.from_regex(r"_[0-9]{1,6}", fullmatch=True))
copies = st.one_of(st.just(""), st.from_regex(r"_copy_([0-9]{1,6}|[0-9a-f]{16})", fullmatch=True))
prefixes = st.sampled_from(["", "(ds%3D1)", "(ds=1.5)", "(a)(b)", "()"])
befores = st.sampled_from(["", "tmp_", "attempt_201101010000_0001_m_", "x-"])
extensions = st.text("ab1._-(é\U0001f600", max_size=8).map(lambda text: text and f".{text}")
written = st.builds(HiveName, befores, prefixes, tasks, attempts, copies, extensions)
names = st.text(
    st.one_of(st.sampled_from("01_.()-aé\n\u2028" + "copy"), st.characters()), max_size=30
)
rules = st.sampled_from(HiveRules)


@pytest.mark.parametrize(
    "name,parts",
    [
        ("000000_0", ("", "", "000000", "_0", "", "")),
        ("000000_0.gz", ("", "", "000000", "_0", "", ".gz")),
        ("000003", ("", "", "000003", "", "", "")),
        ("(ds%3D1)000002_3", ("", "(ds%3D1)", "000002", "_3", "", "")),
        ("(ds=1.5)000002_3", ("", "(ds=1.5)", "000002", "_3", "", "")),
        ("((1)2", ("", "((1)", "2", "", "", "")),
        ("(a)x1", ("(a)x", "", "1", "", "", "")),
        ("tmp_000001_2", ("tmp_", "", "000001", "_2", "", "")),
        ("000000_0_copy_1", ("", "", "000000", "_0", "_copy_1", "")),
        ("000000_0_copy_1.gz", ("", "", "000000", "_0", "_copy_1", ".gz")),
        ("000000_0_copy_0a1B2c3D4e5F6789", ("", "", "000000", "_0", "_copy_0a1B2c3D4e5F6789", "")),
        ("000000_copy_7", ("", "", "000000", "", "_copy_7", "")),
        ("12_34_56", ("12_", "", "34", "_56", "", "")),
        ("a1.b2_0", ("a", "", "1", "", "", ".b2_0")),
        ("\uff101", ("\uff10", "", "1", "", "", "")),
    ],
)
def test_parse(name: str, parts: tuple[str, ...]) -> None:
    """The parts of a name, by any rules."""
    for each in HiveRules:
        assert parse_name(name, each) == HiveName(*parts)


@pytest.mark.parametrize(
    "name", ["", "abc", "_SUCCESS", "a.1b", "(1)", "1_", "1x", "1\n", "a\u20281"]
)
def test_parse_of_no_task(name: str) -> None:
    """A name without a number at the right place is no task's."""
    assert parse_name(name) is None


@pytest.mark.parametrize(
    "by,task,attempt",
    [
        (HiveRules.TWO, "1234567", -1),
        (HiveRules.THREE, "1234567", -1),
        (HiveRules.FOUR, "000001", 1234567),
    ],
)
def test_long_attempts(by: HiveRules, task: str, attempt: int) -> None:
    """An attempt of seven digits is one by the newest rules only."""
    found = parse_name("000001_1234567", by)

    assert found is not None
    assert (found.task, found.number) == (task, attempt)


@given(written, rules)
def test_parts_of_what_is_written(parts: HiveName, by: HiveRules) -> None:
    """Whatever Hive writes is read as it was written."""
    found = parse_name("".join(parts), by)

    assert found is not None
    assert found == parts
    assert found.id == parts.prefix + parts.task


@given(names, rules)
def test_parts_of_any_name(name: str, by: HiveRules) -> None:
    """The parts one after the other are the name, and the task is a number."""
    found = parse_name(name, by)

    if found is None:
        return
    assert "".join(found) == name
    assert found.task.isascii()
    assert found.task.isdigit()
    assert not set(LINE_ENDS) & set(name)


@pytest.mark.parametrize(
    "name",
    ["1" * LONG + "x", "1x" * LONG, "(1)" * LONG, "(" * LONG + "1", "_copy_" * LONG, "1_1" * LONG],
    ids=["digits", "runs", "prefixes", "opened", "copies", "attempts"],
)
@pytest.mark.timeout(20)
def test_hostile_names_are_read_in_one_pass(name: str) -> None:
    """Names on which Hive's expressions would take for ever; on a store none is half as long."""
    for by in HiveRules:
        found = parse_name(name, by)
        assert found is None or "".join(found) == name

    assert (is_copy(name), is_spark(name)) == (False, False)


@pytest.mark.parametrize(
    "name,copy",
    [
        ("000000_0_copy_1", True),
        ("000000_0_copy_1.gz", True),
        ("000000__copy_1", True),
        ("000000_0_copy_00112233445566ff", True),
        ("000000_0_copy_1234567", False),
        ("000000_0_copy_1x", False),
        ("000000_0", False),
    ],
)
def test_copies(name: str, copy: bool) -> None:
    """A copy is no attempt, with an extension or without."""
    assert is_copy(name) is copy


def test_temporary_and_hidden() -> None:
    """What Hive had not finished has one of two prefixes; readers pass over more."""
    names = ["_tmp.000000_0", "_task_tmp.000000_0", "_tmp_x", "_SUCCESS", ".x.crc", "000000_0"]

    assert [is_temporary(name) for name in names] == [True, True, False, False, False, False]
    assert [is_hidden(name) for name in names] == [True, True, True, True, True, False]


def test_spark_names() -> None:
    """What begins as Spark's files do is taken for Spark's."""
    assert is_spark("part-00000-7b0c4a1e-0000-4000-8000-000000000000-c000.snappy.parquet")
    assert is_spark("part-00001-bbb-0.parquet")
    assert not is_spark("000000_0")


@pytest.mark.parametrize(
    "name,foreign",
    [
        ("000000_0", False),
        ("tmp_000000_0", False),
        ("(ds%3D1)000000_0", False),
        ("attempt_200709221812_0001_r_000000_0", False),
        ("part-m-00000", True),
        ("20240101_123456_00001_abcde_0", True),
        ("bucket_00000", True),
        ("2026_01.csv", True),
        ("20261121_1", True),
    ],
)
def test_foreign_names(name: str, foreign: bool) -> None:
    """A number in the middle of a name, or not of six digits, is none that Hive gives a task."""
    found = parse_name(name)

    assert found is not None
    assert found.is_foreign is foreign


def test_temporary_paths() -> None:
    """Beside the final place, and not twice."""
    assert temporary_path("/w/t") == "/w/_tmp.t"
    assert temporary_path("/w/_tmp.t") == "/w/_tmp.t"
    assert temporary_path("/w/_tmp_t") == "/w/_tmp._tmp_t"
    assert task_temporary_path("/w/t") == "/w/_task_tmp.t"
    assert task_temporary_path("/w/_task_tmp.t") == "/w/_task_tmp.t"


@pytest.mark.parametrize(
    "name,task,made",
    [
        ("000000_0.gz", 12, "000012_0.gz"),
        ("(ds%3D1)000002_3", 7, "(ds%3D1)000007_3"),
        ("tmp_000001_2", 3, "tmp_000003_2"),
        ("000000_0_copy_1", 4, "000004_0_copy_1"),
        ("1_1", 12, "12_1"),
        ("000000_000000", 1, "000001_000000"),
    ],
)
def test_replace_task(name: str, task: int, made: str) -> None:
    """The task is replaced where it is, as wide at least, and nothing else."""
    assert replace_task(name, task) == made


def test_replace_task_of_no_task() -> None:
    """A name that is no task's has none to replace."""
    with pytest.raises(ManifestError, match=r"abc: .* no number"):
        replace_task("abc", 1)


@given(written, st.integers(0, 10**6))
def test_replaced_tasks_are_read_again(parts: HiveName, task: int) -> None:
    """The name of another task is read as that task's, all else equal."""
    name = "".join(parts)
    found, other = parse_name(name), parse_name(replace_task(name, task))

    assert found is not None
    assert other is not None
    assert int(other.task) == task
    assert other._replace(task=found.task) == found


@given(written, st.integers(1, 999_999))
def test_next_copies_are_copies(parts: HiveName, number: int) -> None:
    """A name for one more file is a copy's, and has the task and the extension of the first."""
    name = "".join(parts._replace(before=""))
    made = next_copy(name, number)
    found, copy = parse_name(name), parse_name(made)

    assert is_copy(made)
    assert found is not None
    assert copy == found._replace(copy=f"_copy_{number}")


@given(names, st.integers(1, 999_999))
def test_copies_of_any_name(name: str, number: int) -> None:
    """Of the name of a copy it is known whose it is, and which one."""
    first, before = split_copy(name)
    made = next_copy(name, number)

    assert is_copy(made)
    if not is_copy(name):
        assert (first, before) == (name, 0)
        assert split_copy(made) == (name, number)
    assert split_copy("1_0_copy_0011223344556677.gz") == ("1_0.gz", 0)


def _winner(by: HiveRules, *files: tuple[str, int]) -> str:
    return winner_of([HiveAttempt(*file) for file in files], by).name


def test_rules_of_two() -> None:
    """The largest stays; of two as large, the first by name."""
    assert _winner(HiveRules.TWO, ("000000_0", 9), ("000000_1", 5)) == "000000_0"
    assert _winner(HiveRules.TWO, ("000000_1", 5), ("000000_0", 5)) == "000000_0"


def test_rules_of_three() -> None:
    """The newest attempt stays, and there is no winner if it is smaller."""
    assert _winner(HiveRules.THREE, ("000000_2", 9), ("000000_10", 9)) == "000000_10"
    with pytest.raises(ManifestError, match=r"000000_1: .*smaller than 000000_0: 5 bytes, not 9"):
        _winner(HiveRules.THREE, ("000000_0", 9), ("000000_1", 5))


def test_rules_of_four() -> None:
    """The newest attempt stays, whatever its size; a name without one is the oldest."""
    assert _winner(HiveRules.FOUR, ("000000_0", 9), ("000000_1", 5), ("000000", 99)) == "000000_1"


@pytest.mark.parametrize("by", [HiveRules.THREE, HiveRules.FOUR])
def test_equal_attempts(by: HiveRules) -> None:
    """Of two files of one attempt nobody knows which counts."""
    with pytest.raises(
        ManifestError, match=r"000000_1\.gz: belongs to the same attempt as 000000_1"
    ):
        _winner(by, ("000000_2", 9), ("000000_1.gz", 5), ("000000_1", 5))


sized = st.lists(
    st.builds(
        HiveAttempt, st.from_regex(r"000000(_[0-9]{1,2})?", fullmatch=True), st.integers(0, 3)
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda one: one.name,
)


@given(sized, rules, st.randoms(use_true_random=False))
def test_winner_of_any_order(files: list[HiveAttempt], by: HiveRules, random: Random) -> None:
    """Who wins does not depend on the order, and winning once more changes nothing."""
    shuffled = list(files)
    random.shuffle(shuffled)

    def run(given: list[HiveAttempt]) -> HiveAttempt | str:
        try:
            return winner_of(given, by)
        except ManifestError as error:
            return error.path

    first = run(files)

    assert run(shuffled) == first
    if isinstance(first, HiveAttempt):
        assert run([first]) == first
        for left in files:
            assert run([first] if left == first else [first, left]) == first
