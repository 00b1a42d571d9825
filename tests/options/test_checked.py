"""Options and public arguments are checked by their type hints, before anything is done."""

from __future__ import annotations

import asyncio
import dataclasses
import math
import random
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import asynccommit
from asynccommit import (
    Mode,
    OnFailure,
    OnUnfinished,
    OptionError,
    Options,
    OptionWarning,
    UploadOptions,
    UrlError,
    api,
    job_statuses,
    open_job,
    sync,
)
from asynccommit.hive.scan import Reading
from asynccommit.mapreduce.commit_window import MarkerSettings
from asynccommit.options.checked import HIDDEN, Url, Within, bounds_of, checked, show, storage_of
from asynccommit.options.values import boolean
from asynccommit.simulate.setup import Setup
from asynccommit.spark.datasource.options import SourceOptions
from asynccommit.stores.http.base import HttpSettings
from asynccommit.stores.local.store import LocalStore
from asynccommit.stores.policies.rate_queue import Ceilings
from asynccommit.stores.registry import StoreSettings
from asynccommit.stores.urls import parse_url
from asynccommit.streaming.api import open_sink_log
from asynccommit.streaming.log import SinkLog, SinkLogSettings
from asynccommit.testing.emulators import config
from asynccommit.testing.emulators.gcs import config as gcs_config
from tests.support.selection import amount

T = TypeVar("T")

CLASSES: Mapping[type[Any], Mapping[str, Any]] = {
    Options: {},
    UploadOptions: {},
    StoreSettings: {"rng": random.Random(1)},
    Ceilings: {},
    HttpSettings: {},
    SinkLogSettings: {},
    MarkerSettings: {},
    SourceOptions: {"path": "/table"},
    Reading: {},
    Setup: {},
    config.Settings: {},
    gcs_config.GcsEmulatorSettings: {},
}
"""Options class -> the fields that have no default."""

FIELDS = [(kind, item.name) for kind in CLASSES for item in dataclasses.fields(kind)]

ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=10**15),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["refuse", " ROLLBACK ", "append", "strings", "fast", "5", "true"]),
    st.binary(max_size=5),
    st.lists(st.one_of(st.integers(), st.text(max_size=3)), max_size=3),
    st.dictionaries(st.text(max_size=3), st.one_of(st.integers(), st.text(max_size=3)), max_size=2),
    st.sampled_from([Path("/a/b"), object(), print, 1j, Options(), UploadOptions(), ()]),
)


def fits(hint: Any, value: Any) -> bool:
    """Whether ``value`` is of the type that a hint says; bounds are looked at, too."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        bounds = [mark for mark in parts[1:] if isinstance(mark, Within)]
        number = isinstance(value, int | float)
        inside = all(each.low <= value <= each.high for each in bounds) if number else True
        return inside and fits(parts[0], value)
    if origin in (typing.Union, types.UnionType):
        return any(fits(part, value) for part in parts)
    if hint is Any:
        return True
    if origin is tuple:
        return type(value) is tuple and all(fits(parts[0], item) for item in value)
    if origin is Callable:
        return callable(value)
    if origin is Sequence:
        whole = isinstance(value, Sequence) and not isinstance(value, str | bytes)
        return whole and all(fits(parts[0], item) for item in value)
    if origin is not None:
        assert issubclass(origin, Mapping)
        return isinstance(value, Mapping) and all(
            fits(parts[0], key) and fits(parts[1], item) for key, item in value.items()
        )
    if hint in (int, float, bool):
        return type(value) is hint and (hint is bool or not math.isnan(value))
    return isinstance(value, hint)


def attempt(make: Callable[[], T]) -> tuple[T | None, str]:
    """Return what was made and no text, or nothing and why."""
    try:
        return make(), ""
    except OptionError as refused:
        return None, str(refused)


@pytest.mark.more
@pytest.mark.parametrize("kind, name", FIELDS, ids=[f"{k.__name__}.{n}" for k, n in FIELDS])
@settings(max_examples=amount("ASYNCCOMMIT_VALUES", quick=12, full=60))
@given(value=ANYTHING)
@example(value="refuse")
@example(value=-5)
@example(value="5")
@example(value=10**5000)
def test_a_field_is_well_typed_or_refused(kind: type[Any], name: str, value: Any) -> None:
    """Whatever a field is given, it has its type and is within bounds, or it is an error."""
    hints = typing.get_type_hints(kind, include_extras=True)
    made, refusal = attempt(lambda: kind(**{**CLASSES[kind], name: value}))

    assert made is None or fits(hints[name], getattr(made, name))
    assert made is not None or (name in refusal and len(refusal) < 1000)


def is_number(kind: type[Any], name: str) -> bool:
    """Return whether a field takes numbers."""
    hint = typing.get_type_hints(kind)[name]
    parts = typing.get_args(hint) if typing.get_origin(hint) is types.UnionType else ()
    return any(each in (int, float) for each in (hint, *parts))


def test_every_number_has_bounds() -> None:
    """A field that is a number says between which it is."""
    numbers = [field for field in FIELDS if is_number(*field)]

    assert len(numbers) > 10
    assert [field for field in numbers if bounds_of(*field) is None] == []


@pytest.mark.parametrize(
    "given, field, expected",
    [
        ({"on_unfinished": "refuse"}, "on_unfinished", OnUnfinished.REFUSE),
        ({"on_unfinished": "Resume"}, "on_unfinished", OnUnfinished.RESUME),
        ({"on_failure": "rollback"}, "on_failure", OnFailure.ROLLBACK),
        ({"report_directory": Path("/reports")}, "report_directory", "/reports"),
        ({"diagnostics_directory": Path("/kept")}, "diagnostics_directory", "/kept"),
        ({"spill_directory": Path("/spill")}, "spill_directory", "/spill"),
        ({"rate": 5}, "rate", 5.0),
        ({"lease": 60}, "lease", 60.0),
    ],
)
def test_what_is_plainly_meant_is_taken(
    given: dict[str, Any], field: str, expected: object
) -> None:
    """Text names a member, a path object its text, and a whole number is a number."""
    found = getattr(Options(**given), field)

    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    "given, parts",
    [
        ({"on_unfinished": "refused"}, ["Options.on_unfinished", "'refused'", "resume"]),
        ({"workers": -5}, ["Options.workers", "-5", "from 1 to 4,096"]),
        ({"workers": True}, ["Options.workers", "True", "a whole number"]),
        ({"rate": "fast"}, ["Options.rate", "'fast'", "requests a second"]),
        ({"lease": "5"}, ["Options.lease", "'5'", "from 1 to 86,400"]),
        ({"window": 0}, ["Options.window", "0", "from 1"]),
        ({"mark_success": "false"}, ["Options.mark_success", "'false'", "True or False"]),
        ({"uploads": {}}, ["Options.uploads", "a dict", "UploadOptions"]),
        ({"job_key": 7}, ["Options.job_key", "7", "text"]),
        ({"job_key": "a\ud800"}, ["Options.job_key", "\\ud800", "Unicode"]),
        ({"job_key": "k" * 10_001}, ["Options.job_key", "kkk...", "at most 10,000 characters"]),
        ({"workers": 10**5000}, ["Options.workers", "too large"]),
    ],
)
def test_what_a_refusal_says(given: dict[str, Any], parts: list[str]) -> None:
    """A refusal names field, value and what was expected."""
    with pytest.raises(OptionError) as refused:
        Options(**given)

    assert all(part in str(refused.value) for part in parts), str(refused.value)


def test_credentials_in_a_value_are_not_in_the_refusal() -> None:
    """A value of another option may hold some, as a URL does."""
    text = show("https://a/b?sv=1&sig=" + "a2V5" * 30)

    assert text == "'https://a/b?sv=1&sig=***'"
    with pytest.raises(OptionError, match=r"is 'https://a/b\?sig=\*\*\*': expected") as caught:
        boolean("a.key", "https://a/b?sig=a2V5IG9m")
    assert "a2V5" not in str(caught.value)


def test_a_value_that_is_never_shown_is_not_in_the_refusal() -> None:
    """Fields with credentials are refused by type alone."""
    with pytest.raises(OptionError) as refused:
        StoreSettings(random.Random(1), options=cast(Any, "AccountKey=c2VjcmV0"))

    assert "c2VjcmV0" not in str(refused.value)
    assert "a str" in str(refused.value)


# --- configuration keys ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key, value, hint",
    [
        ("workers", 5, "mapreduce.manifest.committer.io.threads"),
        ("worker", "5", "Options(workers=...)"),
        ("on_unfinished", "refuse", "asynccommit.on.unfinished"),
        ("part_size", "64M", "UploadOptions(part_size=...)"),
        ("outside", "true", "asynccommit.resume.outside"),
    ],
)
def test_a_field_s_name_is_no_key(key: str, value: Any, hint: str) -> None:
    """A mapping with names of fields is refused, and says what to write."""
    with pytest.raises(OptionError, match="did you mean") as refused:
        Options.from_conf({key: value})

    assert hint in str(refused.value)


def test_values_of_keys_may_be_numbers_and_truths() -> None:
    """What stands plainly for a text is read as that."""
    read = Options.from_conf(
        {
            "mapreduce.manifest.committer.io.threads": 7,
            "mapreduce.manifest.committer.validate.output": True,
            "asynccommit.rate": 2.5,
        }
    )

    assert read == Options(workers=7, validate=True, rate=2.5)


@pytest.mark.parametrize("value", [None, [], {}, b"7", Path("7")])
def test_other_values_of_keys_are_refused(value: Any) -> None:
    """What is neither text nor number is an error that names the key."""
    with pytest.raises(OptionError, match=r"io\.threads"):
        Options.from_conf({"mapreduce.manifest.committer.io.threads": value})


@pytest.mark.parametrize(
    "key, value, field, most",
    [
        ("mapreduce.manifest.committer.io.threads", "9" * 20, "workers", 4096),
        ("fs.s3a.committer.threads", "-" + "9" * 20, "workers", 4096),
        ("s3.multipart.committer.num-threads", "5000", "workers", 4096),
        ("mapreduce.manifest.committer.writer.queue.capacity", "999999", "window", 65_536),
        ("fs.azure.io.rate.limit", "99999999999", "rate", 1_000_000.0),
        ("mapreduce.fileoutputcommitter.failures.attempts", "2147483647", "commit_attempts", 100),
    ],
)
def test_a_huge_number_of_hadoop_s_is_lowered(
    key: str, value: str, field: str, most: float
) -> None:
    """Under a key of others it means "many": it is taken for the most, with a warning."""
    with pytest.warns(OptionWarning, match="above the maximum"):
        read = Options.from_conf({key: value})

    assert getattr(read, field) == most


def test_a_huge_number_of_parts_is_lowered() -> None:
    """The same holds for what only uploads have."""
    with pytest.warns(OptionWarning, match=r"active\.blocks"):
        read = Options.from_conf({"fs.s3a.fast.upload.active.blocks": "100000"})

    assert read.uploads.in_flight == 4096


@pytest.mark.parametrize("threads", ["32", "512", "1000"])
def test_numbers_in_use_are_taken_as_they_are(threads: str) -> None:
    """What Hadoop's users have in their configurations stays as it is, without a warning."""
    read = Options.from_conf({"mapreduce.manifest.committer.io.threads": threads})

    assert read.workers == int(threads)


@pytest.mark.parametrize(
    "key, value",
    [
        ("asynccommit.rate", "1e7"),
        ("asynccommit.rate", "0.001"),
        ("asynccommit.attempts", "1001"),
        ("asynccommit.max.manifest.bytes", str(1 << 40)),
        ("asynccommit.validate.sample", "9" * 12),
    ],
)
def test_a_number_of_ours_out_of_bounds_is_refused(key: str, value: str) -> None:
    """Under a key of this package it is a mistake, and the error names the bounds."""
    with pytest.raises(OptionError, match=f"{key} is .* from "):
        Options.from_conf({key: value})


def test_the_log_s_settings_are_bounded_by_key() -> None:
    """Settings of a stream's log are checked under their keys as well."""
    with pytest.warns(OptionWarning, match="minBatchesToRetain"):
        read = SinkLogSettings.from_conf({"spark.sql.streaming.minBatchesToRetain": "9" * 15})

    assert read.keep == 1_000_000_000


# --- public arguments --------------------------------------------------------------------------

WRONG: list[dict[str, Any]] = [
    {"job_id": 5},
    {"job_id": b"j"},
    {"options": "x"},
    {"options": [("a", "b")]},
    {"options": {5: "x"}},
    {"options": {"workers": 5}},
    {"attempt": "0"},
    {"attempt": True},
    {"attempt": 1.0},
    {"storage_options": "AccountKey=c2VjcmV0"},
    {"mode": "appendd"},
    {"mode": 5},
    {"committer": 5},
    {"committer": "manifesto"},
    {"on_progress": "print"},
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
async def test_open_job_refuses_a_wrong_argument_first(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    """It is an error that names the argument, before anything is made."""
    with pytest.raises(OptionError) as refused:
        async with open_job(tmp_path / "out", **wrong):
            pytest.fail("the job was set up")

    assert "c2VjcmV0" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", [None, 5, b"/out", ["/out"]])
async def test_a_destination_that_is_no_url(url: Any) -> None:
    """What can be no URL is a ``UrlError`` everywhere."""
    with pytest.raises(UrlError):
        async with open_job(url):
            pytest.fail("the job was set up")
    with pytest.raises(UrlError):
        async with api.job(url, "j").task(0):
            pytest.fail("the task was set up")
    for ask in (lambda: api.job(url).resume(), lambda: job_statuses(url)):
        with pytest.raises(UrlError):
            await ask()
    with pytest.raises(UrlError):
        async with open_sink_log(url):
            pytest.fail("the log was opened")


@pytest.mark.parametrize("make", [asynccommit.job, sync.job], ids=["job", "sync.job"])
@pytest.mark.parametrize(
    "wrong", [{"job_id": 5}, {"attempt": "0"}, {"options": "x"}, {"storage_options": 5}], ids=str
)
def test_a_handle_refuses_a_wrong_argument(
    tmp_path: Path, make: Callable[..., object], wrong: dict[str, Any]
) -> None:
    """It is an ``OptionError`` when the handle is made, and makes nothing."""
    with pytest.raises(OptionError, match=next(iter(wrong))):
        make(tmp_path / "out", **{"job_id": "j", **wrong})

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "wrong", [{"tasks": "t"}, {"tasks": [5]}, {"overwrite": "/t"}, {"mode": "no"}], ids=str
)
def test_commit_job_refuses_a_wrong_argument(tmp_path: Path, wrong: dict[str, Any]) -> None:
    """A text is no list of messages or paths."""
    with pytest.raises(OptionError):
        sync.job(tmp_path / "out", "j").commit(**wrong)


@pytest.mark.parametrize("wrong", [{"task": "0"}, {"task": -1}, {"attempt": "0"}], ids=str)
async def test_a_task_s_numbers_are_checked(tmp_path: Path, wrong: dict[str, Any]) -> None:
    """A task has numbers, from 0; nothing is made for another."""
    async with open_job(tmp_path / "out") as job:
        with pytest.raises(OptionError):
            async with job.task(**{"task": 0, **wrong}):
                pytest.fail("the task was set up")
        with pytest.raises(OptionError, match="commit"):
            job.accept(cast(Any, {"taskId": "t"}))


async def test_a_sink_log_s_arguments_are_checked(tmp_path: Path) -> None:
    """A log refuses what is no batch, and settings of another kind."""
    dest = parse_url(str(tmp_path))
    with pytest.raises(OptionError, match="settings"):
        SinkLog(LocalStore(dest, {}), dest, cast(Any, {"interval": 3}))
    async with open_sink_log(tmp_path) as log:
        with pytest.raises(OptionError, match="batch_id"):
            await log.add(cast(Any, "0"), [])
        with pytest.raises(OptionError, match="files"):
            await log.add(0, cast(Any, "part-0"))


# --- the mechanism -----------------------------------------------------------------------------


async def test_a_coroutine_function_stays_one() -> None:
    """What is awaited raises when it is awaited, and gets what is coerced."""

    class Colour(Enum):
        RED = "red"

    async def ask(mode: Mode, many: Annotated[int, Within(1, 3)] = 1) -> tuple[object, int]:
        return mode, many

    asked = checked(ask)

    assert asyncio.iscoroutinefunction(asked)
    assert await asked(cast(Any, "APPEND"), 3) == (Mode.APPEND, 3)
    with pytest.raises(OptionError, match="from 1 to 3"):
        await asked(Mode.APPEND, 4)
    with pytest.raises(OptionError, match="mode"):
        await asked(cast(Any, Colour.RED))


@dataclasses.dataclass
class _UPath:
    """A path of ``universal_pathlib``: its text, protocol and storage options."""

    text: str
    protocol: str
    storage_options: Mapping[str, Any]

    def __str__(self) -> str:
        return self.text


async def test_a_upath_is_a_destination(tmp_path: Path) -> None:
    """Its text is the URL; its storage options count, and those that are given beside it more."""
    place = _UPath(f"file://{tmp_path}", "file", {})
    async with open_job(cast(Any, place)) as job, job.task(0) as task:
        await task.put("a", b"x")
    assert (tmp_path / "a").read_bytes() == b"x"

    @checked
    def told(url: Url, storage: Annotated[Mapping[str, Any] | None, HIDDEN] = None) -> Any:
        return str(url), storage_of(url, storage)

    remote = cast(Any, _UPath("abfs://c@a/x", "abfs", {"sas_token": "s", "account_name": "a"}))
    assert told(remote) == ("abfs://c@a/x", {"sas_token": "s", "account_name": "a"})
    assert told(remote, {"sas_token": "t"})[1] == {"sas_token": "t", "account_name": "a"}
    assert told("abfs://c@a/x", {"k": "v"})[1] == {"k": "v"}
    assert told("abfs://c@a/x")[1] is None
