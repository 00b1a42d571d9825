"""Accept former names of the fields of an options class, with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, NamedTuple, TypeVar

from asynccommit.errors import OptionError

T = TypeVar("T")


class FormerName(NamedTuple):
    """The present name of a field, and the conversion of its value."""

    name: str
    convert: Callable[[Any], Any] = lambda value: value


def with_former_names(names: Mapping[str, FormerName]) -> Callable[[type[T]], type[T]]:
    """Return a class decorator that accepts former names of fields.

    The constructor warns with ``DeprecationWarning``, and raises ``OptionError`` for a field that
    is given under both names.
    """

    def decorate(kind: type[T]) -> type[T]:
        init: Callable[..., None] = vars(kind)["__init__"]

        @wraps(init)
        def accept(self: T, *args: Any, **given: Any) -> None:
            for former in names.keys() & given.keys():
                name, convert = names[former]
                if name in given:
                    raise OptionError(f"{former} is the former name of {name}: remove {former}")
                text = f"{kind.__name__}.{former} is deprecated: use {name}"
                warnings.warn(text, DeprecationWarning, stacklevel=2)
                given[name] = convert(given.pop(former))
            init(self, *args, **given)

        setattr(kind, "__init__", accept)  # noqa: B010  mypy refuses the assignment
        return kind

    return decorate
