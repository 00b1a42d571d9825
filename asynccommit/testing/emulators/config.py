"""Read the settings of an emulator from a file and from the command line."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from asynccommit.errors import OptionError
from asynccommit.options.checked import check_fields
from asynccommit.testing.emulators.adls.auth import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY
from asynccommit.testing.models.adls.account import AdlsLimits
from asynccommit.testing.models.fault_rules import ADLS, Climate, Dialect
from asynccommit.testing.models.settings import SettingsFields

T = TypeVar("T")

_ACCOUNT = re.compile(r"[a-z0-9]{3,24}").fullmatch
_WEATHER = frozenset({"latency", "limit", "faults"})
_KEYS = _WEATHER | {"accounts", "flat", "filesystems", "pages"}


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of an ADLS emulator.

    Attributes:
        accounts: account name -> key.
        flat: without a hierarchical namespace.
        onelake: workspace -> its items, to serve OneLake instead; ``None`` not to.
        filesystems: names of filesystems to create at the start, in every account.
        climate: latency, request limit and faults.
        pages: limits that split listings and long operations into several requests.
    """

    accounts: Mapping[str, str] = field(
        default_factory=lambda: {DEVELOPMENT_ACCOUNT: DEVELOPMENT_KEY}, repr=False
    )
    flat: bool = False
    onelake: Mapping[str, Sequence[str]] | None = None
    filesystems: tuple[str, ...] = ()
    climate: Climate = field(default_factory=Climate)
    pages: AdlsLimits = field(default_factory=AdlsLimits)

    def __post_init__(self) -> None:
        check_fields(self)


def read_settings(text: str | bytes, name: str = "the configuration") -> Settings:
    """Read a JSON object. Raises ``OptionError`` naming the invalid field."""
    return read_file(text, name, _KEYS, _settings)


def read_file(
    text: str | bytes,
    name: str,
    keys: Collection[str],
    read: Callable[[Mapping[str, Any]], T],
) -> T:
    """Parse a JSON object with ``read``, after checking its keys.

    No other keys than ``keys`` are valid. Raises ``OptionError`` with the name of the file.
    """
    try:
        given = json.loads(text)
    except ValueError as error:
        raise OptionError(f"{name} is no JSON: {error}") from None
    if not isinstance(given, dict):
        raise OptionError(f"{name} must hold one object")
    if unknown := sorted(given.keys() - set(keys)):
        names = ", ".join(sorted(keys))
        raise OptionError(f"{name}: there is no {unknown[0]!r}; known are {names}")
    try:
        return read(given)
    except OptionError as error:
        raise OptionError(f"{name}: {error}") from None


def read_weather(text: str | bytes, name: str, dialect: Dialect) -> Climate:
    """Read a JSON object of latency, limit and faults. Raises ``OptionError``."""
    return read_file(text, name, _WEATHER, lambda given: read_climate(given, dialect))


def read_climate(given: Mapping[str, Any], dialect: Dialect = ADLS) -> Climate:
    """Return the climate among the settings. Raises ``OptionError``."""
    weather = {key: given[key] for key in given.keys() & _WEATHER}
    return Climate.from_json(weather, dialect)


def _settings(given: Mapping[str, Any]) -> Settings:
    settings = Settings(
        flat=read_truth("flat", given.get("flat", False)),
        filesystems=tuple(_texts(given, "filesystems")),
        climate=read_climate(given),
        pages=read_pages(given.get("pages", {}), AdlsLimits()),
    )
    if "accounts" in given:
        settings = replace(settings, accounts=_accounts(given["accounts"]))
    return settings


def _accounts(given: object) -> Mapping[str, str]:
    if not isinstance(given, dict) or not given:
        raise OptionError("accounts must be an object of names and keys")
    for account, key in given.items():
        check_account(account, key)
    return given


def read_pages(given: object, old: AdlsLimits) -> AdlsLimits:
    """Return ``old`` updated with the given values. Raises ``OptionError``."""
    fields = SettingsFields(given, "pages")
    pages = AdlsLimits(
        page=fields.count("page", old.page, 1),
        delete=fields.count("delete", old.delete),
        empty_pages=read_truth("empty_pages", fields.any("empty_pages", old.empty_pages)),
        filesystem_delete=fields.number("filesystem_delete", old.filesystem_delete),
    )
    fields.done()
    return pages


def read_truth(key: str, value: object) -> bool:
    """Return a boolean setting. Raises ``OptionError``."""
    if not isinstance(value, bool):
        raise OptionError(f"{key} must be true or false")
    return value


def _texts(given: Mapping[str, Any], key: str) -> list[str]:
    value = given.get(key, [])
    if not isinstance(value, list) or not all(isinstance(_, str) for _ in value):
        raise OptionError(f"{key} must be a list of names")
    return value


def check_account(account: object, key: object) -> None:
    """Raise ``OptionError`` unless the account name and key are valid."""
    if not isinstance(account, str) or not _ACCOUNT(account):
        raise OptionError(f"{account!r} is no account name: 3 to 24 lower-case letters and digits")
    try:
        usable = isinstance(key, str) and bool(base64.b64decode(key, validate=True))
    except binascii.Error:
        usable = False
    if not usable:
        raise OptionError(f"the key of account {account} is not valid base64")


def read_share(text: str) -> float:
    """Parse a share: ``2%`` or ``0.02``. Raises ``OptionError`` if invalid."""
    number = text.strip().removesuffix("%")
    try:
        share = float(number) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise OptionError(f"{text!r} is not a share: expected 2% or 0.02")
    return share
