"""Settings of a load test, and the plan that its bounds allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from asynccommit.errors import OptionError
from asynccommit.options.checked import Within, check_fields
from asynccommit.stores.base import Traits

_A_FILE = 12  # most requests of a file: written, committed, moved, verified and deleted
_A_JOB = 400  # and of a job besides
_PRESS = 0.25  # share of the requests that finding one rate may send
_FILES_OF_A_TASK = 50
_WRITE = 1 / 4  # share of the seconds in which files are written, all later steps being as long
_SEARCH = 1 / 6  # share of the seconds in which one rate is found


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """Settings of a load test.

    Attributes:
        files: maximum number of files that it makes; fewer if ``max_requests`` allows no more.
        max_requests: maximum number of requests, every attempt counted.
        max_seconds: maximum duration of the measurements; the clean-up comes on top.
        press_seconds: maximum duration of finding one rate.
        forecast: whether to forecast the commit of a million files.
    """

    files: Annotated[int, Within(1, 1_000_000)] = 2_000
    max_requests: Annotated[int, Within(1, 1_000_000_000)] = 200_000
    max_seconds: Annotated[float, Within(0.001, 86_400, "seconds")] = 60.0
    press_seconds: Annotated[float, Within(0.001, 86_400, "seconds")] = 10.0
    forecast: bool = True

    def __post_init__(self) -> None:
        check_fields(self)


class LoadPlan(NamedTuple):
    """The amounts of one load test.

    Attributes:
        files: number of files of the job.
        tasks: number of tasks that write them.
        measured: maximum number of requests before the clean-up.
        press: maximum number of requests to find one rate.
        write_seconds: seconds after which no further file is written.
        press_seconds: maximum duration of finding one rate.
    """

    files: int
    tasks: int
    measured: int
    press: int
    write_seconds: float
    press_seconds: float


def plan_of(settings: LoadSettings, traits: Traits) -> LoadPlan:
    """Return the amounts that the settings allow on a store.

    Raises ``OptionError`` if ``max_requests`` is too low for any file.
    """
    # For the clean-up; where trees are not deleted in one request, each file takes one.
    kept = 50 if traits.recursive_delete else 250 + settings.max_requests // 4
    measured = settings.max_requests - kept
    files = min(settings.files, (measured // 2 - _A_JOB) // _A_FILE)
    if files < 1:
        least = kept + 2 * (_A_JOB + _A_FILE)
        least = least if traits.recursive_delete else 1_432
        raise OptionError(f"max_requests is {settings.max_requests:,}: expected at least {least:,}")
    tasks = -(-files // _FILES_OF_A_TASK)
    return LoadPlan(
        files,
        tasks,
        measured,
        int(measured * _PRESS),
        settings.max_seconds * _WRITE,
        min(settings.press_seconds, settings.max_seconds * _SEARCH),
    )
