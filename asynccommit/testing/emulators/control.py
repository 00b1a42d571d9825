"""The control endpoint of an emulator, under ``/_emulator``.

Of these a proxy, which stores nothing, has all but ``tokens`` and ``pages``.

====================  =======================================================================
GET  faults           the faults that are set
PUT  faults           set these instead (a list, or an object with ``faults``)
POST faults           add these
DELETE faults         none
GET  weather          latency, limit and faults
PUT  weather          replace those of them that are given; ``null`` clears one
GET  stats            what was asked and answered
DELETE stats          count from nothing
GET, PUT tokens       the bearer tokens that are valid (``null``: any) and expired
GET, PUT pages        how the service pages and splits what it does
POST reset            forget everything; the weather is as at the start
====================  =======================================================================
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from asynccommit.testing.emulators.server import ServerRequest
from asynccommit.testing.models.fault_rules import Climate, Dialect, Fault

if TYPE_CHECKING:
    from asynccommit.testing.emulators.emulator import Emulator, Serving

PREFIX = b"/_emulator"


Verb = Callable[[Any], Any]


class Control:
    """The control endpoint: faults, weather and statistics.

    Args:
        emulator: emulator to control.
        more: (method, name) -> handler of verbs that only this kind has; see ``store_verbs``.
    """

    def __init__(
        self, emulator: Serving, more: Mapping[tuple[str, str], Verb] | None = None
    ) -> None:
        self._emulator = emulator
        self._verbs: dict[tuple[str, str], Verb] = {
            ("GET", "faults"): self._faults,
            ("PUT", "faults"): self._set_faults,
            ("POST", "faults"): self._add_faults,
            ("DELETE", "faults"): self._clear_faults,
            ("GET", "weather"): self._weather,
            ("PUT", "weather"): self._set_weather,
            ("GET", "stats"): lambda _: self._emulator.stats(),
            ("DELETE", "stats"): self._clear_stats,
            ("POST", "reset"): self._reset,
            **(more or {}),
        }

    def answer(self, request: ServerRequest) -> bytes:
        """Return the whole response; reject an invalid request with the reason."""
        name = request.target.partition(b"?")[0][len(PREFIX) :].strip(b"/").decode("latin-1")
        verb = self._verbs.get((request.method, name))
        if "origin" in request.headers:  # a browser page: it must not control the emulator
            return _json(403, {"error": "requests of web pages are refused"})
        if verb is None:
            verbs = sorted(" ".join(_) for _ in self._verbs)
            return _json(404, {"error": f"no {request.method} {name}", "known": verbs})
        try:
            given = json.loads(request.body) if request.body else None
            return _json(200, verb(given))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            return _json(400, {"error": f"{type(error).__name__}: {error}"})

    def _faults(self, _: Any) -> Any:
        return [fault.to_json() for fault in self._emulator.weather.climate.faults]

    def _set_faults(self, given: Any) -> Any:
        self._replace_faults(*_read_faults(given, self._emulator.weather.dialect))
        return self._faults(None)

    def _add_faults(self, given: Any) -> Any:
        weather = self._emulator.weather
        weather.add(*_read_faults(given, weather.dialect))
        return self._faults(None)

    def _clear_faults(self, _: Any) -> Any:
        self._replace_faults()
        return []

    def _replace_faults(self, *faults: Fault) -> None:
        weather = self._emulator.weather
        weather.climate = replace(weather.climate, faults=faults)

    def _weather(self, _: Any) -> Any:
        return self._emulator.weather.climate.to_json()

    def _set_weather(self, given: Any) -> Any:
        if not isinstance(given, dict):
            raise ValueError("an object with latency, limit or faults is needed")
        old = self._weather(None)
        merged = {key: value for key, value in {**old, **given}.items() if value is not None}
        weather = self._emulator.weather
        weather.climate = Climate.from_json(merged, weather.dialect)
        return self._weather(None)

    def _clear_stats(self, _: Any) -> Any:
        self._emulator.clear_stats()
        return self._emulator.stats()

    def _reset(self, _: Any) -> Any:
        self._emulator.reset()
        return {"reset": True}


def store_verbs(emulator: Emulator) -> dict[tuple[str, str], Verb]:
    """Return the verbs of every store emulator, by (method, name)."""

    def tokens(_: Any) -> Any:
        keys = emulator.keys
        valid = None if keys.tokens is None else sorted(keys.tokens)
        return {"valid": valid, "expired": sorted(keys.expired)}

    def set_tokens(given: Any) -> Any:
        valid, expired = given.get("valid"), given.get("expired", [])
        keys = emulator.keys
        keys.tokens = None if valid is None else {str(_) for _ in valid}
        keys.expired = {str(_) for _ in expired}
        return tokens(None)

    def set_pages(given: Any) -> Any:
        emulator.set_pages(given)
        return emulator.pages()

    return {
        ("GET", "tokens"): tokens,
        ("PUT", "tokens"): set_tokens,
        ("GET", "pages"): lambda _: emulator.pages(),
        ("PUT", "pages"): set_pages,
    }


def _read_faults(given: Any, dialect: Dialect) -> list[Fault]:
    rules = given.get("faults") if isinstance(given, dict) else given
    if isinstance(rules, dict):
        rules = [rules]
    if isinstance(given, dict) and rules is None:
        rules = [given]
    if not isinstance(rules, list):
        raise ValueError("a list of faults is needed")
    return [Fault.from_json(rule, dialect=dialect) for rule in rules]


def _json(status: int, value: Any) -> bytes:
    body = json.dumps(value, indent=2).encode() + b"\n"
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("latin-1") + body
