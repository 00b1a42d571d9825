"""Sort and parse a store's options, and configure its transport.

The names are a table of each store, in ``options.py`` of its folder.
"""

from __future__ import annotations

import base64
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from typing import Any, ClassVar, TypeVar
from urllib.parse import quote

from asynccommit.errors import OptionError
from asynccommit.options.checked import show
from asynccommit.options.job import OptionWarning, bare
from asynccommit.options.values import boolean
from asynccommit.stores.http.base import HttpSettings

T = TypeVar("T", int, float)

CONNECTIONS = 4096
"""The maximum number of connections of a store."""
LONGEST = 1e6
"""The exclusive upper bound for seconds, and for requests a second."""
LARGEST = 5 << 30
"""The maximum number of bytes of one request."""

WORDS: Mapping[str, bool] = {
    **dict.fromkeys(("true", "1", "t", "yes"), True),
    **dict.fromkeys(("false", "0", "f", "no"), False),
}
"""The accepted spellings of true and false, in lower case."""

_SECONDS = {
    "": 1e-3,
    "ns": 1e-9,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
_SIZE = re.compile(r"([0-9]{1,30})([kmgt]?)b?", re.IGNORECASE | re.ASCII)
_TIME = re.compile(r"([0-9]{1,30})\s*([a-z]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OptionNames:
    """The names of a store's options.

    Attributes:
        store: the service, for errors.
        known: names that have an effect, Hadoop's apart.
        hadoop: prefixes of Hadoop's names.
        foreign: prefixes of other stores: a configuration may be of several clouds.
        passed_over: names of fsspec about opened files and kept listings, which have no effect
            and are no fault.
        begins: prefixes of further names that have an effect.
        same: other names for known ones.
        no_effect: names that a caller expects something of: their harmless values, and why they
            have no effect.
        elsewhere: names of other libraries, and what to give instead.
    """

    store: str
    known: frozenset[str]
    hadoop: tuple[str, ...]
    foreign: tuple[str, ...]
    passed_over: frozenset[str]
    begins: tuple[str, ...] = ()
    same: Mapping[str, str] = field(default_factory=dict)
    no_effect: Mapping[str, tuple[tuple[str, ...], str]] = field(default_factory=dict)
    elsewhere: Mapping[str, str] = field(default_factory=dict)

    def sort(self, options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the options under their own names, and those of Hadoop.

        Raises:
            OptionError: a name is unknown; the message has the nearest names.
        """
        named: dict[str, Any] = {}
        hadoop: dict[str, str] = {}
        for key, value in options.items():
            name = bare(key)
            if value is None or name in self.passed_over or (value == "" and name != "proxy"):
                continue
            if name.startswith(self.foreign):
                continue
            if name.startswith(self.hadoop):
                hadoop[name] = str(value)
            elif name in self.no_effect:
                self._warn(name, value)
            elif (name := self.same.get(name, name)) in self.known or name.startswith(self.begins):
                named[name] = value
            else:
                raise OptionError(self._unknown(name))
        return named, hadoop

    def _warn(self, name: str, value: object) -> None:
        harmless, why = self.no_effect[name]
        if str(value).lower() not in harmless:
            warnings.warn(f"{name} has no effect here: {why}", OptionWarning, stacklevel=5)

    def _unknown(self, name: str) -> str:
        near = get_close_matches(name.lower(), self.known, n=3, cutoff=0.6)
        if name.lower() in self.elsewhere:
            hint = f": {self.elsewhere[name.lower()]}"
        elif near:
            hint = f": did you mean {' or '.join(near)}?"
        else:
            hint = f"; known options: {', '.join(sorted(self.known))}"
        return f"no option {name[:100]!r} of a store on {self.store}{hint}"


class HadoopOptions:
    """Options of one of Hadoop's clients, whose names begin alike.

    Attributes:
        prefixes: how they begin; the first one is for errors.
        timeouts: options with the seconds to connect, to read, and of a request as a whole.
        agent: the option with a text for the ``User-Agent``.
        endless: what 0 seconds mean; ``None`` for the default.
    """

    prefixes: ClassVar[tuple[str, ...]] = ("",)
    timeouts: ClassVar[tuple[str, str, str]] = ("", "", "")
    agent: ClassVar[str] = ""
    endless: ClassVar[float | None] = None

    def __init__(self, conf: Mapping[str, str]) -> None:
        self._conf = conf

    def get(self, *names: str) -> str:
        """Return the value of the first given option of ``names``, or ``""``."""
        keys = (prefix + name for name in names for prefix in self.prefixes)
        return next(filter(None, (self._conf.get(key, "").strip() for key in keys)), "")

    def flag(self, name: str) -> bool | None:
        """Return whether ``name`` is true; ``None`` if it is not given."""
        value = self.get(name)
        return boolean(self.prefixes[0] + name, value) if value else None

    def sized(self, name: str, most: int, expected: str) -> int | None:
        """Return ``name`` as a number of at least 1, which may be written ``24m``.

        It is ``None`` if the option is missing, and ``most`` at most.

        Raises:
            OptionError: the value is invalid; the message says what is expected.
        """
        value, key = self.get(name), self.prefixes[0] + name
        if not value:
            return None
        found = _SIZE.fullmatch(value)
        if not found or not int(found[1]):
            raise OptionError(f"{key} is {value[:100]!r}: expected {expected}")
        return at_most(key, int(found[1]) << 10 * " kmgt".index(found[2].lower() or " "), most)

    def seconds(self, name: str) -> float | None:
        """Return ``name`` in seconds; it is ``5s``, or a number of milliseconds."""
        value, key = self.get(name), self.prefixes[0] + name
        if not value:
            return None
        found = _TIME.fullmatch(value)
        unit = _SECONDS.get(found[2].lower()) if found else None
        if found is None or unit is None:
            raise OptionError(
                f"{key} is {value[:100]!r}: expected a duration such as 5s, or milliseconds"
            )
        return at_most(key, int(found[1]) * unit, LONGEST - 1) if int(found[1]) else self.endless

    def proxy(self) -> str | None:
        """Return the URL of the proxy; ``None`` if none is given."""
        return None

    def proxy_user(self) -> str:
        """Return the name and password for the proxy, as they stand in a URL."""
        user, password = self.get("proxy.username"), self.get("proxy.password")
        return f"{quote(user, safe='')}:{quote(password, safe='')}@" if user else ""

    def agent_text(self) -> str:
        """Return the text for the ``User-Agent``, or ``""``."""
        text = self.get(self.agent)
        if text and not (text.isascii() and text.isprintable()):
            raise OptionError(
                f"{self.prefixes[0]}{self.agent} is {text[:100]!r}: expected plain letters"
            )
        return text


_NO_HADOOP = HadoopOptions({})


def http_settings(
    options: Mapping[str, Any],
    workers: int,
    hadoop: HadoopOptions = _NO_HADOOP,
    *,
    read: float | None = None,
    total: float | None = None,
    ca_file: str | None = None,
) -> HttpSettings:
    """Return the settings of a store's transport.

    Args:
        options: options under their own names.
        workers: requests in flight.
        hadoop: Hadoop's options, for what ``told`` does not set.
        read: default read timeout in seconds.
        total: default of the seconds of a request as a whole, and the least from Hadoop's.
        ca_file: default of the file with further certificates.
    """
    defaults = HttpSettings()
    seconds = partial(number, options, what="a number of seconds")
    connects, reads, totals = hadoop.timeouts
    whole = seconds("requests_timeout") or seconds("timeout")
    proxy = options.get("proxy")
    return HttpSettings(
        connect_timeout=seconds("connection_timeout")
        or hadoop.seconds(connects)
        or defaults.connect_timeout,
        read_timeout=seconds("read_timeout")
        or hadoop.seconds(reads)
        or read
        or defaults.read_timeout,
        total_timeout=whole or max(hadoop.seconds(totals) or 0.0, total or defaults.total_timeout),
        connections=workers,
        proxy=hadoop.proxy() if proxy is None else str(proxy),
        ca_file=text(options, "ca_file") or ca_file or None,
        user_agent=f"{defaults.user_agent} {hadoop.agent_text()}".rstrip(),
    )


def text(options: Mapping[str, Any], name: str) -> str | None:
    """Return the option ``name`` as text; ``None`` if it is not given."""
    return str(options[name]) if name in options else None


def flag(options: Mapping[str, Any], name: str) -> bool | None:
    """Return whether the option ``name`` is true; ``None`` if it is not given.

    Raises:
        OptionError: the value is neither true nor false.
    """
    if name not in options:
        return None
    found = WORDS.get(str(options[name]).strip().lower())
    if found is None:
        raise OptionError(f"{name} is {show(options[name])}: expected true or false")
    return found


def count(options: Mapping[str, Any], name: str, most: int = (1 << 31) - 1) -> int | None:
    """Return the option ``name`` as a whole number; ``None`` if it is missing.

    Raises:
        OptionError: the value is not a whole number from 1 to ``most``.
    """
    if name not in options:
        return None
    value = options[name]
    try:
        found = int(value)
    except (TypeError, ValueError, OverflowError):
        found = 0
    if isinstance(value, bool) or (isinstance(value, float) and value != found):
        found = 0
    if not 0 < found <= most:
        raise OptionError(
            f"{name} is {show(options[name])}: expected a whole number from 1 to {most:,}"
        )
    return found


def number(options: Mapping[str, Any], name: str, what: str) -> float | None:
    """Return the option ``name`` as a number above 0 and below a million.

    Returns ``None`` if the option is missing.

    Raises:
        OptionError: the value is invalid; the message says that ``what`` is expected.
    """
    if name not in options:
        return None
    try:
        found = float(options[name])
    except (TypeError, ValueError, OverflowError):
        found = 0.0
    if not 0.0 < found < LONGEST:
        expected = f"expected {what}, above 0 and below {LONGEST:,.0f}"
        raise OptionError(f"{name} is {show(options[name])}: {expected}")
    return found


def customer_key(what: str, key: str | bytes) -> bytes:
    """Return a customer's key, given as 32 bytes or as their base64.

    Raises ``OptionError`` that calls it ``what``.
    """
    try:
        raw = key if isinstance(key, bytes) else base64.b64decode(key.strip(), validate=True)
    except ValueError:
        raw = b""
    if len(raw) != 32:
        raise OptionError(
            f"{what} is not 32 bytes in base64: make one with openssl rand -base64 32"
        )
    return raw


def at_most(key: str, found: T, most: T) -> T:
    """Return a Hadoop value; reduce it to ``most`` with an ``OptionWarning``.

    A value that Hadoop accepts is capped, not rejected.
    """
    if found <= most:
        return found
    message = f"{key} is {show(found)}, above the maximum: {most:,} is used"
    warnings.warn(message, OptionWarning, stacklevel=3)
    return most
