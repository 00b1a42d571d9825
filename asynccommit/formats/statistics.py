"""Counters and durations in the form of ``IOStatisticsSnapshot``.

Durations are in milliseconds. An operation ``X`` increments the counter ``X``, and a failed one
also ``X.failures``. Its times are under ``X.min``, ``X.max`` and ``X.mean``, or ``X.failures.min``
and so on. A sample uses the bare name in every map and adds its value to the counter. A minimum or
maximum that was never set is -1 in JSON and absent here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from asynccommit.formats.fields import MAX_LONG, as_integer

DURATIONS = (
    # Stages of a job and of a task.
    "committer_commit_job",
    "job_stage_abort",
    "job_stage_cleanup",
    "job_stage_create_target_dirs",
    "job_stage_load_manifests",
    "job_stage_optional_validate_output",
    "job_stage_rename_files",
    "job_stage_save_success_marker",
    "job_stage_setup",
    "task_stage_abort_task",
    "task_stage_commit",
    "task_stage_save_manifest",
    "task_stage_scan_directory",
    "task_stage_setup",
    # Requests and groups of requests.
    "commit_file_rename",
    "object_continue_list_request",
    "object_list_request",
    "op_create_directories",
    "op_create_one_directory",
    "op_delete",
    "op_delete_dir",
    "op_delete_file_under_destination",
    "op_directory_scan",
    "op_get_file_status",
    "op_is_directory",
    "op_is_file",
    "op_list_status",
    "op_load_all_manifests",
    "op_load_manifest",
    "op_mkdir_returned_false",
    "op_mkdirs",
    "op_msync",
    "op_prepare_dir_ancestors",
    "op_rename",
    "store_io_rate_limited",
    "task_stage_save_summary_file",
    "task_stage_save_task_manifest",
)
COUNTERS = (
    "commit_file_rename_recovered",
    "committer_bytes_committed",
    "committer_files_committed",
    "committer_task_directory_count",
    "committer_task_directory_depth",
    "committer_task_file_count",
    "committer_task_file_size",
    "committer_task_manifest_file_size",
    "committer_tasks_completed",
    "committer_tasks_failed",
)
_TIMED = (*DURATIONS, *(f"{name}.failures" for name in DURATIONS))
MAX_NAMES = 1000
"""Maximum number of names in one map; a file with more is not Hadoop's."""


@dataclass(slots=True)
class Statistics:
    """Counters and timings.

    Attributes:
        counters, gauges, minimums, maximums: maps of name to integer.
        means: map of name to (number of samples, their sum).
    """

    counters: dict[str, int] = field(default_factory=dict)
    gauges: dict[str, int] = field(default_factory=dict)
    minimums: dict[str, int] = field(default_factory=dict)
    maximums: dict[str, int] = field(default_factory=dict)
    means: dict[str, tuple[int, int]] = field(default_factory=dict)

    def count(self, name: str, n: int = 1) -> None:
        """Add ``n`` to a counter; a negative ``n`` adds nothing, as in Hadoop."""
        if n > 0:
            self.counters[name] = self.counters.get(name, 0) + n

    def gauge(self, name: str, value: int) -> None:
        """Set the value of a gauge."""
        self.gauges[name] = value

    def sample(self, name: str, value: int) -> None:
        """Add a sample of a quantity, such as the size of a file."""
        self.count(name, value)
        self._observe(name, name, name, value)

    def duration(self, name: str, seconds: float, failed: bool = False) -> None:
        """Add an operation that took ``seconds``."""
        self.count(name)
        if failed:
            name = f"{name}.failures"
            self.count(name)
        millis = max(0, int(seconds * 1000))
        self._observe(f"{name}.min", f"{name}.max", f"{name}.mean", millis)

    def merge(self, other: Statistics) -> None:
        """Merge ``other``: add counters, gauges and means; combine extremes."""
        for name, value in other.counters.items():
            self.count(name, value)
        for name, value in other.gauges.items():
            self.gauges[name] = self.gauges.get(name, 0) + value
        for name, value in other.minimums.items():
            self.minimums[name] = min(value, self.minimums.get(name, value))
        for name, value in other.maximums.items():
            self.maximums[name] = max(value, self.maximums.get(name, value))
        for name, (samples, total) in other.means.items():
            had = self.means.get(name, (0, 0))
            self.means[name] = (had[0] + samples, had[1] + total)

    def to_json(self, full: bool = True) -> dict[str, Any]:
        """Return the five maps of the snapshot.

        Args:
            full: whether to write all 84 registered names, as Hadoop does, rather than only those
                in use.
        """
        means = {
            name: {"samples": _long(samples), "sum": _long(total)}
            for name, (samples, total) in self.means.items()
        }
        none = {"samples": 0, "sum": 0}
        return {
            "counters": _registered("", 0, full) | _longs(self.counters),
            "gauges": _longs(self.gauges),
            "minimums": _registered(".min", -1, full) | _longs(self.minimums),
            "maximums": _registered(".max", -1, full) | _longs(self.maximums),
            "meanstatistics": _registered(".mean", none, full) | means,
        }

    @classmethod
    def from_json(cls, value: object) -> Statistics:
        """Read a snapshot; an invalid one counts as empty.

        Statistics are for people, so they never fail a commit. Maps, names and values of another
        type or out of range are left out, as are names beyond ``MAX_NAMES`` and empty values (zero
        counters and gauges, unset minimums, no samples).
        """
        maps = value if isinstance(value, dict) else {}
        return cls(
            counters={k: v for k, v in _integers(maps.get("counters")) if v > 0},
            gauges={k: v for k, v in _integers(maps.get("gauges")) if v},
            minimums={k: v for k, v in _integers(maps.get("minimums"), -1) if v != -1},
            maximums={k: v for k, v in _integers(maps.get("maximums"), -1) if v != -1},
            means=_means(maps.get("meanstatistics")),
        )

    def _observe(self, least: str, greatest: str, mean: str, value: int) -> None:
        self.minimums[least] = min(value, self.minimums.get(least, value))
        self.maximums[greatest] = max(value, self.maximums.get(greatest, value))
        samples, total = self.means.get(mean, (0, 0))
        self.means[mean] = (samples + 1, total + value)


def _registered(suffix: str, value: Any, full: bool) -> dict[str, Any]:
    if not full:
        return {}
    return dict.fromkeys((*(name + suffix for name in _TIMED), *COUNTERS), value)


def _long(value: int) -> int:
    return max(-MAX_LONG - 1, min(value, MAX_LONG))


def _longs(values: dict[str, int]) -> dict[str, int]:
    return {name: _long(value) for name, value in values.items()}


def _some(value: object) -> list[tuple[str, Any]]:
    return list(islice(value.items(), MAX_NAMES)) if isinstance(value, dict) else []


def _integers(value: object, unset: int = 0) -> list[tuple[str, int]]:
    # Hadoop always writes all names, so nearly all numbers are zero or unset.
    numbers = [(name, number) for name, number in _some(value) if number != unset]
    read = ((name, as_integer(number)) for name, number in numbers)
    return [(name, number) for name, number in read if number is not None]


_NO_SAMPLES = {"samples": 0, "sum": 0}


def _means(value: object) -> dict[str, tuple[int, int]]:
    means = {}
    for name, mean in _some(value):
        if mean == _NO_SAMPLES:
            continue
        found = dict(_integers(mean))
        if found.get("samples", 0) > 0:
            means[name] = (found["samples"], found.get("sum", 0))
    return means
