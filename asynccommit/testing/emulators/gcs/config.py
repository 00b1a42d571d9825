"""Read the settings of a Google Cloud Storage emulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from asynccommit.errors import OptionError
from asynccommit.options.checked import check_fields
from asynccommit.testing.emulators.config import read_climate, read_file, read_truth
from asynccommit.testing.models.fault_rules import Climate
from asynccommit.testing.models.gcs.model import BucketOptions, GcsLimits
from asynccommit.testing.models.gcs.quotas import FLAT, HIERARCHICAL, NO_QUOTAS, Quotas
from asynccommit.testing.models.gcs.refusals import GCS
from asynccommit.testing.models.settings import SettingsFields

_KEYS = frozenset({"buckets", "pages", "latency", "limit", "faults"})
_TRUTHS = (*("hns", "versioning", "requester_pays", "default_event_based_hold", "moves"),)
_NUMBERS = ("soft_delete", "retention")
_TEXTS = ("location", "storage_class", "default_kms_key_name")
_PRESETS = {"none": NO_QUOTAS, "flat": FLAT, "hierarchical": HIERARCHICAL}


@dataclass(frozen=True, slots=True)
class GcsEmulatorSettings:
    """The settings of a GCS emulator.

    Attributes:
        buckets: name -> options of the initial buckets.
        climate: latency, request limit and faults.
        pages: limits that split listings and long operations into several requests.
    """

    buckets: Mapping[str, BucketOptions] = field(default_factory=dict)
    climate: Climate = field(default_factory=Climate)
    pages: GcsLimits = field(default_factory=GcsLimits)

    def __post_init__(self) -> None:
        check_fields(self)


def read_gcs_settings(text: str | bytes, name: str = "the configuration") -> GcsEmulatorSettings:
    """Read a JSON object. Raises ``OptionError`` naming the invalid field."""
    return read_file(text, name, _KEYS, _settings)


def _settings(given: Mapping[str, Any]) -> GcsEmulatorSettings:
    return GcsEmulatorSettings(
        buckets=read_buckets(given.get("buckets", {})),
        climate=read_climate(given, GCS),
        pages=read_pages(given.get("pages", {}), GcsLimits()),
    )


def read_buckets(given: object) -> dict[str, BucketOptions]:
    """Return name -> options, given a list of names or an object.

    Raises ``OptionError``.
    """
    if isinstance(given, list) and all(isinstance(name, str) for name in given):
        given = {name: {} for name in given}
    if not isinstance(given, Mapping):
        raise OptionError("buckets must be a list of names, or an object of names and options")
    return {name: read_bucket(name, value) for name, value in given.items()}


def read_bucket(name: str, given: object, old: BucketOptions | None = None) -> BucketOptions:
    """Return ``old`` updated with the given values. Raises ``OptionError``."""
    found = SettingsFields(given, f"buckets.{name}")
    old = old or BucketOptions()
    changes: dict[str, Any] = {}
    for key in _TRUTHS:
        changes[key] = read_truth(f"{found.name}.{key}", found.any(key, getattr(old, key)))
    for key in _NUMBERS:
        changes[key] = found.number(key, getattr(old, key))
    for key in _TEXTS:
        changes[key] = found.text(key, getattr(old, key))
    quotas = found.any("quotas", old.quotas)
    changes["quotas"] = quotas if isinstance(quotas, Quotas) else _quotas(found.name, quotas)
    found.done()
    return replace(old, **changes)


def _quotas(name: str, given: object) -> Quotas:
    if isinstance(given, str):
        if given not in _PRESETS:
            raise OptionError(f"{name}.quotas is {given!r}: expected one of {', '.join(_PRESETS)}")
        return _PRESETS[given]
    found = SettingsFields(given, f"{name}.quotas")
    quotas = Quotas(
        writes=found.number_or_none("writes"),
        reads=found.number_or_none("reads"),
        doubling=found.number("doubling", NO_QUOTAS.doubling),
        burst=found.number("burst", NO_QUOTAS.burst),
        name_interval=found.number_or_none("name_interval"),
        name_burst=found.number("name_burst", NO_QUOTAS.name_burst),
    )
    found.done()
    return quotas


def show_bucket_options(options: BucketOptions) -> dict[str, Any]:
    """Return options in the form that ``read_bucket`` reads."""
    shown = {item.name: getattr(options, item.name) for item in fields(options)}
    return {**shown, "quotas": options.quotas._asdict()}


def read_pages(given: object, old: GcsLimits) -> GcsLimits:
    """Return ``old`` updated with the given values. Raises ``OptionError``."""
    found = SettingsFields(given, "pages")
    pages = GcsLimits(
        page=found.count("page", old.page, 1),
        empty_pages=read_truth("empty_pages", found.any("empty_pages", old.empty_pages)),
        rewrite_bytes=found.count("rewrite_bytes", old.rewrite_bytes),
        operation_seconds=found.number("operation_seconds", old.operation_seconds),
    )
    found.done()
    return pages
