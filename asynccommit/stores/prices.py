"""Prices of the requests of a store, by kind.

List prices are of one region and one kind of redundancy, and a contract may have others: the result
is an estimate. A table of your own is read by ``read_prices``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from types import MappingProxyType
from typing import Annotated, Any

from asynccommit.errors import OptionError
from asynccommit.options.checked import Within, check_fields

_EACH = 10_000
_READS = ("head", "read", "get", "get_tagged", "completed", "status", "layout", "probe")
_LISTS = ("list", "list_tree", "list_many", "list_uploads", "list_parts")
_DELETES = ("delete", "delete_tree", "delete_many", "batch", "abort_upload")
_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "rename": "rename",
        "move": "rename",
        **dict.fromkeys(_READS, "read"),
        **dict.fromkeys(_LISTS, "list"),
        **dict.fromkeys(_DELETES, "delete"),
    }
)
"""Name of a request, of a store or of its service -> its kind; others write."""

_Dollars = Annotated[float, Within(0, 1e6, "dollars for 10,000 requests")]


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars for 10,000 requests of each kind.

    Attributes:
        write: what creates a file or a directory, or adds to a file.
        rename: a file.
        rename_directory: a directory.
        list: a page of a listing.
        read: a read, or the status of a file.
        delete: a file or a directory.
        source: where the prices are from.
        day: when they were read there.
    """

    write: _Dollars = 0.0
    rename: _Dollars = 0.0
    rename_directory: _Dollars = 0.0
    list: _Dollars = 0.0
    read: _Dollars = 0.0
    delete: _Dollars = 0.0
    source: str = ""
    day: str = ""

    def __post_init__(self) -> None:
        check_fields(self)

    def of(self, requests: Mapping[str, int], directories: int = 0) -> float:
        """Return the dollars of requests by name.

        Of the renames ``directories`` are of directories.
        """
        more = (self.rename_directory - self.rename) * directories
        kinds = sum(getattr(self, _KINDS.get(name, "write")) * n for name, n in requests.items())
        return float(kinds + more) / _EACH

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)


_AZURE = "https://learn.microsoft.com/azure/storage/blobs/azcopy-cost-estimation"
_GOOGLE = "https://cloud.google.com/storage/pricing"
_AMAZON = "https://aws.amazon.com/s3/pricing/"

LIST_PRICES: Mapping[str, Prices] = MappingProxyType(
    {
        "adls": Prices(
            write=0.0715,
            rename=0.0715,
            rename_directory=7.15,  # an iterative write, priced by the hundred
            list=0.0715,
            read=0.0057,
            source=f"{_AZURE}; samples of the hot tier, a directory by the hundred",
            day="2026-11-27",
        ),
        "gcs": Prices(
            write=0.05,
            rename=0.05,
            list=0.05,
            read=0.004,
            source=f"{_GOOGLE}, Standard storage in one region, without folders",
            day="2026-09-20",
        ),
        "s3": Prices(
            write=0.05,
            rename=0.05,
            list=0.05,
            read=0.004,
            source=f"{_AMAZON}, S3 Standard",
            day="2026-11-27",
        ),
    }
)
"""Name of a kind of store -> prices of an ordinary account in the United States."""


_STORES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("abfs", "abfss", "az"), "adls"),
        **dict.fromkeys(("gs", "gcs"), "gcs"),
        **dict.fromkeys(("s3", "s3a"), "s3"),
    }
)
"""Scheme of a URL -> kind of store."""


def prices_of(scheme: str) -> Prices | None:
    """Return the list prices of the store of a scheme, if there are any."""
    return LIST_PRICES.get(_STORES.get(scheme, ""))


def read_prices(text: str) -> Prices:
    """Read a table of prices in JSON; a field that is left out costs nothing.

    Raises ``OptionError`` that names what is wrong.
    """
    known = [field.name for field in fields(Prices)]
    try:
        told = json.loads(text)
    except ValueError as error:
        raise OptionError(f"the prices are not JSON: {error}") from None
    if not isinstance(told, dict) or set(told) - set(known):
        raise OptionError(f"the prices are no JSON object with fields among {', '.join(known)}")
    numbers = {name: value for name, value in told.items() if name not in ("source", "day")}
    for name, value in numbers.items():
        if type(value) not in (int, float) or not math.isfinite(value):
            raise OptionError(f"{name} is {value!r}: expected dollars for 10,000 requests")
    return Prices(**told)
