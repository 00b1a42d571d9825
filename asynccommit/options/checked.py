"""Check options and public arguments by their type hints.

One rule applies to all of them. The hint gives the type, and ``Annotated`` gives the rest: the
bounds of a number (``Within``), that a path object is converted to text (``PATH``, ``URL``), that a
value is never shown (``HIDDEN``). A value with one plain meaning is coerced: text to a member of an
enumeration, a path object to its text, a whole number to a float. Anything else is refused with an
error that names the field or argument, the value, and what was expected.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import numbers
import operator
import os
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache, partial, wraps
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, cast

from asynccommit.errors import AsyncCommitError, OptionError, UrlError
from asynccommit.redact import redact

P = ParamSpec("P")
T = TypeVar("T")
_Fit = Callable[[Any], Any]
"""Returns a value coerced to a hint. Raises ``_Unfit``."""

_PLAIN = (str, bool, int, float, Enum, os.PathLike, type(None))
_SHOWN = 100
NO_TEXT = re.compile("[\x00\ud800-\udfff]")
"""Characters that no path or name can have: NUL and halves of surrogate pairs."""


@dataclass(frozen=True, slots=True)
class Within:
    """The bounds of a number, both inclusive.

    Attributes:
        low: the lower bound.
        high: the upper bound.
        unit: unit of the number, for messages.
    """

    low: float
    high: float
    unit: str = ""

    def __str__(self) -> str:
        of = f" of {self.unit}" if self.unit else ""
        if math.isinf(self.high):
            return f"{of} of at least {self.low:,.12g}"
        return f"{of} from {self.low:,.12g} to {self.high:,.12g}"


@dataclass(frozen=True, slots=True)
class _Mark:
    """A further property of a value.

    See ``PATH``, ``URL``, ``HIDDEN``, ``BUFFER``.
    """

    name: str


PATH = _Mark("PATH")
"""A path object is taken for its text."""
URL = _Mark("URL")
"""The same of a URL; a relative path is one from here, and what is neither is a ``UrlError``."""
HIDDEN = _Mark("HIDDEN")
"""Credentials may be in the value: no message shows it."""

BUFFER = _Mark("BUFFER")
"""Any object that has bytes to read; a number and a list have none, though ``bytes`` takes them."""

Url = Annotated[str | os.PathLike[str], URL]
"""A URL or a path, as text or as a path object, also one of ``universal_pathlib``."""


class UrlText(str):
    """The text of a ``UPath``, with the storage options that it holds."""

    storage_options: Mapping[str, Any]

    @classmethod
    def of(cls, value: object) -> UrlText | None:
        """Return the text of a ``UPath``; ``None`` for anything else."""
        protocol = getattr(value, "protocol", None)
        options = getattr(value, "storage_options", None)
        if isinstance(value, str) or not isinstance(protocol, str):
            return None
        if not isinstance(options, Mapping):
            return None
        text = cls(value)
        text.storage_options = dict(options)
        return text

    def at(self, text: str) -> UrlText:
        """Return another text with these storage options."""
        found = UrlText(text)
        found.storage_options = self.storage_options
        return found


def url_text(url: str | os.PathLike[str]) -> UrlText | str:
    """Return a URL or path as text that means the same in every process."""
    given = UrlText.of(url)
    return located(os.fspath(url)) if given is None else given.at(located(given))


def storage_of(url: object, given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the storage options of a URL; those that are ``given`` take precedence."""
    own = url.storage_options if isinstance(url, UrlText) else {}
    return {**own, **(given or {})} if own else given


class _Unfit(Exception):  # noqa: N818 - never leaves this module
    """Raised when a value does not match its hint, with what was expected."""


@dataclass(frozen=True, slots=True)
class _Checked:
    """The name, type and rules of one field or argument.

    Attributes:
        name: its name in messages.
        hint: its type, with ``Annotated``.
        fit: returns a value coerced to the type.
        hidden: whether its value is never shown.
        error: class of the error raised for an invalid value.
    """

    name: str
    hint: Any
    fit: _Fit
    hidden: bool = False
    error: type[AsyncCommitError] = OptionError


def check_fields(made: object) -> None:
    """Check and coerce the fields of a frozen dataclass, called by its ``__post_init__``.

    Raises ``OptionError`` that names the class and field, the value, and what was expected.
    """
    kind: Any = type(made)
    for field, place in _fields(kind).items():
        value = getattr(made, field)
        fitted = _checked(place, value, place.name)
        if fitted is not value:
            object.__setattr__(made, field, fitted)


def check_field(kind: type, field: str, value: object, name: str) -> object:
    """Return ``value`` coerced to the type of a field of a class.

    ``name`` is the source of the value, such as a configuration key.

    Raises ``OptionError`` that names ``name``.
    """
    return _checked(_fields(kind)[field], value, name)


def bounds_of(kind: type, field: str) -> Within | None:
    """Return the bounds of a field of a class, or ``None`` if it has none."""
    return _marked(_fields(kind)[field].hint, Within)


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """Return ``function`` with its arguments checked and coerced on each call.

    A coroutine function raises when it is awaited, as for any other error.
    """
    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def awaited(*given: P.args, **named: P.kwargs) -> Any:
            arguments = _arguments(function, given, named)
            return await function(*arguments.args, **arguments.kwargs)

        return cast(Callable[P, T], awaited)

    @wraps(function)
    def called(*given: P.args, **named: P.kwargs) -> T:
        arguments = _arguments(function, given, named)
        return function(*arguments.args, **arguments.kwargs)

    return called


def _arguments(
    function: Callable[..., object], given: tuple[Any, ...], named: Mapping[str, Any]
) -> inspect.BoundArguments:
    """Return the checked arguments of a call.

    Raises ``TypeError`` for a call that does not match the signature.
    """
    bound = _signature(function).bind(*given, **named)
    places = _parameters(function)
    for name, value in bound.arguments.items():
        if name in places:
            bound.arguments[name] = _checked(places[name], value, name)
    return bound


def _checked(place: _Checked, value: object, name: str) -> object:
    try:
        return place.fit(value)
    except _Unfit as unfit:
        shown = f"a {type(value).__name__}" if place.hidden else show(value)
        raise place.error(f"{name} is {shown}: expected {unfit}") from None


def show(value: object) -> str:
    """Return a value for a message, redacted and truncated; of a container only its type."""
    if isinstance(value, _PLAIN):
        try:
            text = redact(repr(value))
        except Exception:  # Python does not convert a number with thousands of digits to text
            return f"a {type(value).__name__} that is too large"
        return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return f"a {type(value).__name__}"


# --- declarations ----------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _fields(kind: type) -> Mapping[str, _Checked]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return {
        field.name: _place(f"{kind.__name__}.{field.name}", hints[field.name], hide=not field.repr)
        for field in dataclasses.fields(kind)
    }


@lru_cache(maxsize=256)
def _parameters(function: Callable[..., object]) -> Mapping[str, _Checked]:
    hints = typing.get_type_hints(function, include_extras=True)
    names = (name for name in _signature(function).parameters if name in hints)
    return {name: _place(name, hints[name]) for name in names}


@lru_cache(maxsize=256)
def _signature(function: Callable[..., object]) -> inspect.Signature:
    return inspect.signature(function)


def _place(name: str, hint: Any, *, hide: bool = False) -> _Checked:
    marks = list(_marks(hint))
    error = UrlError if URL in marks else OptionError
    return _Checked(name, hint, _fit(hint), hide or HIDDEN in marks, error)


def _marks(hint: Any) -> typing.Iterator[object]:
    """Yield the annotations anywhere in a hint, including parts of a union."""
    if typing.get_origin(hint) is Annotated:
        base, *marks = typing.get_args(hint)
        yield from marks
        yield from _marks(base)
    elif _is_union(hint):
        for part in typing.get_args(hint):
            yield from _marks(part)


def _marked(hint: Any, kind: type[T]) -> T | None:
    return next((mark for mark in _marks(hint) if isinstance(mark, kind)), None)


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


# --- fitting a value to a hint ---------------------------------------------------------------


def _fit(hint: Any, marks: Sequence[object] = ()) -> _Fit:
    """Return the function that coerces a value to ``hint``."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _fit(parts[0], (*parts[1:], *marks))
    if BUFFER in marks:
        return _buffer
    if _is_union(hint):
        return partial(_one_of, [_fit(part, marks) for part in parts])
    if hint in (Any, object) or isinstance(hint, TypeVar):
        return _anything
    if origin is Literal:
        return _such(parts.__contains__, f"one of {', '.join(map(repr, parts))}")
    if origin is not None:
        return _generic(origin, parts, marks)
    if hint in (None, type(None)):
        return _such(lambda value: value is None, "None")
    if issubclass(hint, Enum):
        return partial(_member, hint)
    if hint in _READERS:
        return _READERS[hint](marks)
    if getattr(hint, "_is_protocol", False):
        return _such(lambda value: not isinstance(value, _PLAIN), f"a {hint.__name__}")
    return _instance(hint)


def _anything(value: Any) -> Any:
    return value


def _such(fits: Callable[[Any], bool], expected: str) -> _Fit:
    """Return the function that takes the values for which ``fits`` holds."""

    def fit(value: Any) -> Any:
        if not fits(value):
            raise _Unfit(expected)
        return value

    return fit


def _instance(kind: type) -> _Fit:
    return _such(lambda value: isinstance(value, kind), f"an instance of {kind.__name__}")


def _one_of(parts: Sequence[_Fit], value: Any) -> Any:
    """Return ``value`` coerced to the first part of a union that accepts it."""
    expected: list[str] = []
    for part in parts:
        try:
            return part(value)
        except _Unfit as unfit:
            expected.append(str(unfit))
    raise _Unfit(" or ".join(dict.fromkeys(expected)))


def _generic(origin: Any, parts: Sequence[Any], marks: Sequence[object]) -> _Fit:
    if origin is Callable:
        return _such(callable, "a function")
    if issubclass(origin, os.PathLike):
        return _text((*marks, PATH))
    if issubclass(origin, Mapping):
        return partial(_mapping, _fit(parts[0]), _fit(parts[1]))
    if issubclass(origin, Sequence):
        return partial(_sequence, origin, _fit(parts[0]))
    return _instance(origin)


def _mapping(key_of: _Fit, item_of: _Fit, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise _Unfit("a mapping")
    for key, item in value.items():
        try:
            key_of(key)
            item_of(item)
        except _Unfit as unfit:
            where = show(key) if isinstance(key, str) else "a key of it"
            raise _Unfit(f"{unfit} for {where} in a mapping") from None
    return value


def _sequence(origin: type, item_of: _Fit, value: Any) -> Any:
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray):
        raise _Unfit("a list or tuple")
    items = list(map(item_of, value))
    same = all(map(operator.is_, items, value))
    if issubclass(origin, tuple):
        return value if same and isinstance(value, tuple) else tuple(items)
    return value if same else items


def _member(kind: type[Enum], value: Any) -> Enum:
    if isinstance(value, kind):
        return value
    text = value.strip().lower() if isinstance(value, str) else None
    for member in kind:
        if text is not None and text == str(member.value).lower():
            return member
    raise _Unfit(f"one of {', '.join(str(member.value) for member in kind)}")


def _flag(marks: Sequence[object]) -> _Fit:
    return _such(lambda value: isinstance(value, bool), "True or False")


def _integer(marks: Sequence[object]) -> _Fit:
    bounds = _bounds(marks)
    expected = f"a whole number{bounds or ''}"

    def fit(value: Any) -> int:
        try:
            if isinstance(value, bool):
                raise TypeError
            found = operator.index(value)
        except TypeError:
            raise _Unfit(expected) from None
        return _inside(found if type(value) is not int else value, bounds, expected)

    return fit


def _number(marks: Sequence[object]) -> _Fit:
    bounds = _bounds(marks)
    expected = f"a number{bounds or ''}"

    def fit(value: Any) -> float:
        if type(value) is float:
            return _inside(value, bounds, expected)
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise _Unfit(expected)
        try:
            found = float(value)
        except (OverflowError, ValueError):
            raise _Unfit(expected) from None
        return _inside(found, bounds, expected)

    return fit


_N = TypeVar("_N", int, float)


def _inside(found: _N, bounds: Within | None, expected: str) -> _N:
    if not (found == found if bounds is None else bounds.low <= found <= bounds.high):
        raise _Unfit(expected)
    return found


def _bounds(marks: Sequence[object]) -> Within | None:
    return next((mark for mark in marks if isinstance(mark, Within)), None)


def _buffer(value: Any) -> Any:
    try:
        memoryview(value).release()
    except TypeError:
        raise _Unfit("bytes") from None
    return value


def _text(marks: Sequence[object]) -> _Fit:
    path = PATH in marks or URL in marks
    expected = "a path or URL" if path else "text"

    def fit(value: Any) -> str:
        if path and (found := UrlText.of(value)) is not None:
            return url_text(value) if URL in marks else found
        if path and isinstance(value, os.PathLike):
            value = os.fspath(value)
        if not isinstance(value, str):
            raise _Unfit(expected)
        return located(value) if URL in marks else value

    return fit


_READERS: Mapping[Any, Callable[[Sequence[object]], _Fit]] = {
    bool: _flag,
    int: _integer,
    float: _number,
    str: _text,
}


def located(text: str) -> str:
    """Return a relative path from the working directory; others stay."""
    scheme, colon, _ = text.partition(":")
    if not text or text.startswith("/") or (colon and "/" not in scheme):
        return text
    return os.path.join(os.getcwd(), text)
