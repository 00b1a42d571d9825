"""The emulator's own endpoint, on its port under ``/_emulator``: faults, weather, statistics.

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
GET, PUT pages        how the accounts page and split what they do
POST reset            forget everything; the weather is as at the start
====================  =======================================================================
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from asynccommit.emulators.config import read_pages
from asynccommit.emulators.server import Request
from asynccommit.sim.faults import Climate, Fault

if TYPE_CHECKING:
    from asynccommit.emulators.adls import AdlsEmulator

PREFIX = b"/_emulator"


class Control:
    """Reads and sets what an emulator does beyond answering."""

    def __init__(self, emulator: AdlsEmulator) -> None:
        self._emulator = emulator
        self._verbs: dict[tuple[str, str], Callable[[Any], Any]] = {
            ("GET", "faults"): self._faults,
            ("PUT", "faults"): self._set_faults,
            ("POST", "faults"): self._add_faults,
            ("DELETE", "faults"): self._clear_faults,
            ("GET", "weather"): self._weather,
            ("PUT", "weather"): self._set_weather,
            ("GET", "stats"): lambda _: self._emulator.stats(),
            ("DELETE", "stats"): self._clear_stats,
            ("GET", "tokens"): self._tokens,
            ("PUT", "tokens"): self._set_tokens,
            ("GET", "pages"): self._pages,
            ("PUT", "pages"): self._set_pages,
            ("POST", "reset"): self._reset,
        }

    def answer(self, request: Request) -> bytes:
        """Return the whole answer; what cannot be read is refused with the reason."""
        name = request.target.partition(b"?")[0][len(PREFIX) :].strip(b"/").decode("latin-1")
        verb = self._verbs.get((request.method, name))
        if "origin" in request.headers:  # a page in a browser, which has no business here
            return _json(403, {"error": "requests of web pages are refused"})
        if verb is None:
            known = sorted(" ".join(_) for _ in self._verbs)
            return _json(404, {"error": f"no {request.method} {name}", "known": known})
        try:
            given = json.loads(request.body) if request.body else None
            return _json(200, verb(given))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            return _json(400, {"error": f"{type(error).__name__}: {error}"})

    def _faults(self, _: Any) -> Any:
        return [fault.to_json() for fault in self._emulator.weather.climate.faults]

    def _set_faults(self, given: Any) -> Any:
        self._replace_faults(*_read_faults(given))
        return self._faults(None)

    def _add_faults(self, given: Any) -> Any:
        self._emulator.weather.add(*_read_faults(given))
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
        self._emulator.weather.climate = Climate.from_json(merged)
        return self._weather(None)

    def _clear_stats(self, _: Any) -> Any:
        self._emulator.clear_stats()
        return self._emulator.stats()

    def _tokens(self, _: Any) -> Any:
        keyring = self._emulator.keyring
        valid = None if keyring.tokens is None else sorted(keyring.tokens)
        return {"valid": valid, "expired": sorted(keyring.expired)}

    def _set_tokens(self, given: Any) -> Any:
        valid, expired = given.get("valid"), given.get("expired", [])
        keyring = self._emulator.keyring
        keyring.tokens = None if valid is None else {str(_) for _ in valid}
        keyring.expired = {str(_) for _ in expired}
        return self._tokens(None)

    def _pages(self, _: Any) -> Any:
        return self._emulator.model.limits._asdict()

    def _set_pages(self, given: Any) -> Any:
        limits = read_pages(given, self._emulator.model.limits)
        for account in self._emulator.accounts.values():
            account.limits = limits
        return self._pages(None)

    def _reset(self, _: Any) -> Any:
        self._emulator.reset()
        return {"reset": True}


def _read_faults(given: Any) -> list[Fault]:
    rules = given.get("faults") if isinstance(given, dict) else given
    if isinstance(rules, dict):
        rules = [rules]
    if isinstance(given, dict) and rules is None:
        rules = [given]
    if not isinstance(rules, list):
        raise ValueError("a list of faults is needed")
    return [Fault.from_json(rule) for rule in rules]


def _json(status: int, value: Any) -> bytes:
    body = json.dumps(value, indent=2).encode() + b"\n"
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("latin-1") + body
