"""The wire format of ADLS Gen2: paths, queries, listings, statuses."""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson

from asynccommit.stores.base import Info, Kind
from asynccommit.stores.filesystem_names import is_temporary
from asynccommit.stores.http.errors import unread_json

VERSION = "2024-11-04"  # the first that keeps x-ms-client-transaction-id
PAGE = 5000  # entries of one page of a listing, the most that the service gives

_plain = re.compile(r"(?:[A-Za-z0-9_.~-]*[A-Za-z0-9_~-])?").fullmatch
_new = tuple.__new__
_FILE = Kind.FILE


class SignedQuery(NamedTuple):
    """A query of a URL, and its signed part."""

    text: str
    signed: str


def query(**pairs: str | int) -> SignedQuery:
    """Return the query of ``pairs``, values percent-encoded."""
    known = sorted((name.lower(), name, str(value)) for name, value in pairs.items())
    text = "&".join(f"{name}={quote(value, safe='')}" for _, name, value in known)
    return SignedQuery(text, "".join(f"\n{lower}:{value}" for lower, _, value in known))


def encode(path: str) -> str:
    """Percent-encode an absolute decoded path.

    All characters are encoded but letters, digits and ``-._~/``.
    """
    folder, _, name = path.rpartition("/")
    return f"{_folder(folder)}/{name if _plain(name) else _name(name)}"


@lru_cache(maxsize=4096)
def _folder(path: str) -> str:
    return "/".join(map(_name, path.split("/")))


def _name(name: str) -> str:
    if name.endswith("."):
        raise ValueError(f"{name!r} ends in a dot, which ADLS removes: choose another name")
    if "\0" in name:
        raise ValueError(f"{name!r} holds NUL, which is not allowed in a path")
    try:
        return quote(name, safe="")
    except UnicodeEncodeError:
        raise ValueError(f"{name!r} is not Unicode text") from None


def is_hidden(path: str) -> bool:
    """Return whether ``path`` is a temporary file, which listings leave out."""
    return is_temporary(path.rpartition("/")[2])


def bare_etag(text: str | None) -> str | None:
    """Return an etag as Hadoop writes it: without quotes and weakness mark."""
    return text.removeprefix("W/").strip('"') if text else None


@lru_cache(maxsize=1024)
def _day(text: str) -> int:
    return timegm(parsedate_to_datetime(f"{text} 00:00:00 GMT").timetuple())


@lru_cache(maxsize=4096)
def parse_date(text: str | None) -> float:
    """Parse an HTTP date into seconds since the epoch; 0.0 if it is invalid."""
    try:
        # "Tue, 05 Mar 2024 17:09:08 GMT": the day is nearly always one seen before.
        hour, minute, second = text[17:25].split(":")  # type: ignore[index]
        return float(_day(text[:16]) + 3600 * int(hour) + 60 * int(minute) + int(second))  # type: ignore[index]
    except (TypeError, ValueError, IndexError):
        return 0.0


def info_of(path: str, headers: Mapping[str, str]) -> Info:
    """Return the facts about ``path`` in a status response.

    Raises:
        ValueError: the response is invalid.
    """
    etag = bare_etag(headers.get("etag"))
    if etag is None:
        raise ValueError("the response has no ETag")
    kind = Kind.DIRECTORY if headers.get("x-ms-resource-type") == "directory" else _FILE
    return Info(
        path,
        kind,
        int(headers.get("content-length", 0)) if kind is _FILE else 0,
        etag,
        parse_date(headers.get("last-modified")),
        token=headers.get("x-ms-client-transaction-id") or None,
    )


def entries_of(body: bytes, path: str) -> list[Info]:
    """Return one page of a listing of ``path`` without hidden entries."""
    try:
        paths: list[dict[str, Any]] = orjson.loads(body)["paths"]
        found = [_entry(entry) for entry in paths]
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"the response is not a listing ({type(error).__name__})") from None
    except orjson.JSONDecodeError as error:
        raise unread_json(body, error, "the response is not a listing") from None
    except ValueError as error:
        raise ValueError(f"the response is not a listing ({error})") from None
    start = "/" if path == "/" else f"{path}/"
    for info in found:
        name = info.path[len(start) :]
        outside = not info.path.startswith(start) or "/" in name or name in ("", ".", "..")
        if (outside and info.path != path) or info.size < 0:
            raise ValueError(f"the response is not a listing of {path}: it has {info.path!r}")
    return [info for info in found if not is_hidden(info.path)]


def _entry(entry: dict[str, Any]) -> Info:
    path, etag = "/" + entry["name"], bare_etag(entry.get("etag") or entry.get("eTag"))
    modified = parse_date(entry.get("lastModified"))
    # Azure sends strings; other servers send true and 12.
    if entry.get("isDirectory") in ("true", True):
        return Info(path, Kind.DIRECTORY, 0, etag, modified)
    size = int(entry.get("contentLength", 0))
    # A third of the time of Info(...), once for every file of a listing.
    return _new(Info, (path, _FILE, size, etag, modified, 0, True, None, 0.0, 0, None))
