"""Former names of what is public, which work with a warning.

They go in the next version; ``docs/migrating.md`` has the table of former and present names.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

_PLACE = ("attempt", "options", "storage_options", "committer", "pending")


class Former(NamedTuple):
    """The value of a former name.

    Attributes:
        load: returns the value.
        remedy: the code that replaces the name, for the warning.
    """

    load: Callable[[], object]
    remedy: str


def former_names(
    module: str, names: Mapping[str, Former], *, stacklevel: int = 3
) -> Callable[[str], object]:
    """Return ``__getattr__`` of a module for former names, which warn.

    The warning is a ``DeprecationWarning`` at the line that uses or imports the name, so many
    calls above ``warn_of_former``.
    """

    def get(name: str) -> object:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn_of_former(f"{module}.{name}", names[name].remedy, stacklevel=stacklevel)
        return names[name].load()

    return get


def warn_of_former(name: str, remedy: str, *, stacklevel: int = 3) -> None:
    """Warn of a former name, by default at the line that calls the caller."""
    text = f"{name} is deprecated and goes in the next version: use {remedy}"
    warnings.warn(text, DeprecationWarning, stacklevel=stacklevel)


class FormerField:
    """The former name of a field, which can be read with a warning.

    Args:
        name: the present name.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._former = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._former = f"asynccommit.{owner.__name__}.{name}"

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None:
            return self
        warn_of_former(self._former, self._name)
        return getattr(instance, self._name)


def functions_of_jobs(module: str, job: Callable[[], Callable[..., Any]]) -> Mapping[str, Former]:
    """Return the functions that the methods of a job's handle replace.

    Args:
        module: where they were.
        job: returns the function that makes a handle.
    """
    methods = ("commit", "plan", "abort", "resume", "rollback")
    return {
        f"{method}_job": Former(
            lambda method=method: _function(module, method, job()),  # type: ignore[misc]
            f"{module}.job(url, job_id).{method}()",
        )
        for method in methods
    }


def function_of_tasks(module: str, name: str, job: Callable[[], Callable[..., Any]]) -> Former:
    """Return the function that the method ``task`` of a job's handle replaces."""
    return Former(
        lambda: _task_function(module, name, job()), f"{module}.job(url, job_id).task(number)"
    )


@cache
def _function(module: str, method: str, job: Callable[..., Any]) -> Callable[..., Any]:
    def former(url: Any, job_id: str | None = None, *args: Any, **given: Any) -> Any:
        place = {name: given.pop(name) for name in _PLACE if name in given}
        return getattr(job(url, job_id, **place), method)(*args, **given)

    return _named(former, module, f"{method}_job")


@cache
def _task_function(module: str, name: str, job: Callable[..., Any]) -> Callable[..., Any]:
    def former(
        url: Any,
        job_id: str,
        task: int,
        attempt: int | None = None,
        *,
        job_attempt: int = 0,
        **place: Any,
    ) -> Any:
        return job(url, job_id, attempt=job_attempt, **place).task(task, attempt)

    return _named(former, module, name)


def _named(function: Callable[..., Any], module: str, name: str) -> Callable[..., Any]:
    """Name a function by the place where it was, for pickling."""
    function.__module__, function.__name__, function.__qualname__ = module, name, name
    return function
