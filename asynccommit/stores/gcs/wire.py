"""The wire format of Google Cloud Storage.

Names, etags, listings and uploads.
"""

from __future__ import annotations

import math
import re
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache, partial
from typing import Any
from urllib.parse import quote

import orjson

from asynccommit.stores.base import Info, Kind
from asynccommit.stores.http.errors import unread_json
from asynccommit.stores.http.flat import (
    Listing,
    below_only,
    can_be_named,
    check_length,
    directories,
    placeholder,
    prefix_of,
)

TOKEN = "asynccommit-token"  # the key of custom metadata that a put leaves its token under
SOURCE = "asynccommit-source"  # and that a copy leaves under which its source was, and which one
PLAIN = "&prettyPrint=false"  # answers without white space: a quarter less
_EMPTY = "AAAAAA=="  # the checksum of no bytes
_KNOWN = ("name", "size", "generation", "crc32c", "updated")
_HOLDS = ("temporaryHold", "eventBasedHold")
_RETAINED = "retentionExpirationTime"
_OF_FILE = ",".join((*_KNOWN, *_HOLDS, _RETAINED))
OBJECT = f"fields={_OF_FILE},metadata{PLAIN}"
_KEPT: tuple[str, ...] = (
    "cacheControl",
    "contentDisposition",
    "contentEncoding",
    "contentLanguage",
)
_KEPT += ("contentType", "customTime", "metadata", "storageClass")  # by a copy
WHOLE = f"fields={_OF_FILE},{','.join(_KEPT)}{PLAIN}"
_LISTED = f"fields=kind,items({_OF_FILE}),prefixes,nextPageToken{PLAIN}"
_FOLDERS = f"fields=items(name),nextPageToken{PLAIN}"

_RESERVED = "/.well-known/acme-challenge/"  # whose objects the service keeps for certificates

_plain = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9_.~-]+").fullmatch
_bad = re.compile(r"[\r\n\0]").search
_generation = re.compile(r"([1-9][0-9]{0,18})(?:-[0-9a-f]{8})?", re.ASCII).fullmatch
_parse_date = datetime.fromisoformat
_new = tuple.__new__
_FILE = Kind.FILE


# --- names -----------------------------------------------------------------------------------


def encode(path: str) -> str:
    """Return the percent-encoded object name of an absolute decoded path, slashes included."""
    folder, _, name = path.rpartition("/")
    text = _folder(folder) + (name if _plain(name) else _name(name))
    check_length(path, text)
    return text


def encode_raw(name: str) -> str:
    """Percent-encode the name of an object that is there, whatever it is."""
    return quote(name, safe="")


@lru_cache(maxsize=4096)
def _folder(path: str) -> str:
    if f"{path}/".startswith(_RESERVED):
        raise ValueError(f"{path!r} is reserved: no object name may begin with it")
    return "".join(f"{_name(name)}%2F" for name in path.split("/")[1:])


def _name(name: str) -> str:
    if found := _bad(name):
        raise ValueError(f"{name!r} holds {found[0]!r}, which is not allowed in an object name")
    if not can_be_named(name):
        raise ValueError(f"{name!r} is not a valid file name: clients would resolve it")
    try:
        return quote(name, safe="")
    except UnicodeEncodeError:
        raise ValueError(f"{name!r} is not Unicode text") from None


# --- etags -----------------------------------------------------------------------------------


def generation_of(etag: str) -> str:
    """Return the generation in an etag of ours or of the JSON API."""
    text = etag.strip('"')
    if found := _generation(text):
        return found[1]
    return str(_of_protobuf(text))


def _of_protobuf(etag: str) -> int:
    """Read the generation and metageneration in an etag of the JSON API."""
    try:
        data = a2b_base64(etag, strict_mode=True)
        generation, rest = _varint(data, 0x08)
        _, rest = _varint(rest, 0x10)
    except (ValueError, IndexError):
        data, rest, generation = b"", b"?", 0
    if rest or not 0 < generation < 1 << 63:
        raise ValueError(f"{etag[:80]!r} is not an etag of Google Cloud Storage")
    return generation


def _varint(data: bytes, key: int) -> tuple[int, bytes]:
    if data[0] != key:
        raise ValueError("another field")
    value = 0
    for place in range(1, 11):
        value |= (data[place] & 0x7F) << (7 * (place - 1))
        if data[place] < 0x80:
            return value, data[place + 1 :]
    raise ValueError("too long")


# --- objects ---------------------------------------------------------------------------------


def info_of(path: str, body: bytes) -> Info:
    """Return the facts about ``path`` in an object's metadata.

    Args:
        path: of the object.
        body: of the answer.

    Raises:
        ValueError: the response is invalid.
    """
    item = json_of(body)
    try:
        info = _entry(item)
    except (TypeError, KeyError, AttributeError, Base64Error, ValueError) as error:
        why = f"{type(error).__name__}: {error}"
        raise ValueError(f"the response is not an object ({why})") from None
    if info.path != path:
        raise ValueError(f"the response is about {info.path!r}")
    metadata = item.get("metadata")
    marks = metadata if isinstance(metadata, dict) else {}
    # A server may merge the metadata of a copy with its source's: the copy has both then.
    token = marks.get(SOURCE, marks.get(TOKEN))
    return info._replace(token=token if isinstance(token, str) else None)


def json_of(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a response.

    Raises ``ValueError`` if the body is not a JSON object.
    """
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise unread_json(body, error, "the response is not JSON") from None
    if not isinstance(found, dict):
        raise ValueError("the response is not a JSON object")
    return found


def _entry(item: dict[str, Any]) -> Info:
    # Google's own test server leaves the size of empty objects out.
    left_out = "size" not in item and item.get("crc32c") == _EMPTY
    generation, size = item["generation"], 0 if left_out else int(item["size"])
    if size < 0 or not generation.isdecimal():
        raise ValueError("size or generation is not a number")
    crc = item.get("crc32c")
    etag = f"{generation}-{a2b_base64(crc).hex()}" if crc else generation
    # A third of the time of Info(...), once for every file of a listing.
    seconds = parse_date(item.get("updated"))
    held = _held(item) if len(item) > len(_KNOWN) else 0.0
    path = "/" + item["name"]
    return _new(Info, (path, _FILE, size, etag, seconds, 0, True, None, held, 0, None))


def _held(item: dict[str, Any]) -> float:
    """Return the time until which an object cannot be changed."""
    if any(item.get(name) is True for name in _HOLDS):
        return math.inf
    return parse_date(item.get(_RETAINED))


def parse_date(text: str | None) -> float:
    """Parse a date in RFC 3339 into seconds since the epoch; 0.0 if invalid."""
    try:
        return _parse_date(text).timestamp()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return 0.0


# --- listings --------------------------------------------------------------------------------


def list_query(path: str, most: int, token: str | None, *, tree: bool, hierarchical: bool) -> str:
    """Return the query of a page of a listing of the directory ``path``."""
    text = f"prefix={quote(prefix_of(path), safe='')}&maxResults={most}&{_LISTED}"
    if not tree:
        text += "&delimiter=%2F"
    if hierarchical and not tree:
        text += "&includeFoldersAsPrefixes=true"
    return f"{text}&pageToken={quote(token, safe='')}" if token else text


def folder_query(path: str, most: int, token: str | None) -> str:
    """Return the query of a page of the folders below ``path``."""
    text = f"prefix={quote(prefix_of(path), safe='')}&pageSize={most}&{_FOLDERS}"
    return f"{text}&pageToken={quote(token, safe='')}" if token else text


def listed(body: bytes, path: str, *, tree: bool = False) -> Listing:
    """Parse a page of a listing of the directory ``path``.

    Objects whose names end in a slash are placeholders of directories, which have the etag of
    that object; other directories have none. What no path can name, with
    an empty segment or dots for one, is left out, but for the files of a whole tree: those can be
    deleted.

    Raises:
        ValueError: the response is invalid.
    """
    found = json_of(body)
    if found.get("kind") != "storage#objects":
        raise ValueError("the response is not a listing")
    try:
        entries = [_entry(item) for item in found.get("items", ())]
        names = ["/" + prefix for prefix in found.get("prefixes", ())]
    except (TypeError, KeyError, AttributeError, Base64Error, ValueError) as error:
        why = f"{type(error).__name__}: {error}"
        raise ValueError(f"the response is not a listing ({why})") from None
    page = below_only(entries, path, partial(_seen, tree=tree))
    return Listing(page.entries + directories(names, path), page.itself, _token(found))


def _seen(info: Info, tree: bool) -> Info:
    """Return the kind and path of a listed object.

    An object with an invalid path is of kind ``OTHER``, except in a tree, where it can be deleted.
    """
    if info.path[-1] == "/":
        found = placeholder(info.path)
        if found is not None:
            return found._replace(etag=info.etag) if tree else found
        return info if tree else Info(info.path, Kind.OTHER)
    if info.path[-1] == "." and not tree and not can_be_named(info.path.rpartition("/")[2]):
        return Info(info.path, Kind.OTHER)
    return info


def folders_listed(body: bytes, path: str) -> Listing:
    """Parse a page of the folders below ``path``.

    Raises ``ValueError``.
    """
    found = json_of(body)
    try:
        names = ["/" + item["name"] for item in found.get("items", ())]
    except (TypeError, KeyError) as error:
        raise ValueError(f"the response is not a listing ({type(error).__name__})") from None
    entries = [
        Info(info.path[:-1], Kind.DIRECTORY) if info.kind is Kind.OTHER else info
        for info in directories(names, path)
    ]
    return Listing(entries, f"/{prefix_of(path)}" in names, _token(found))


def _token(found: Mapping[str, Any]) -> str | None:
    token = found.get("nextPageToken") or None
    if token is not None and not isinstance(token, str):
        raise ValueError("the response is not a listing: its page token is not text")
    return token


# --- copies ----------------------------------------------------------------------------------


def mark_of(path: str, generation: str) -> str:
    """Return what a copy is marked with: which object it was made of."""
    return f"{path}#{generation}"


def copied(body: bytes, mark: str) -> bytes:
    """Return the source's metadata for a copy, with ``mark`` as its mark."""
    item = json_of(body)
    kept = {name: item[name] for name in _KEPT if name in item}
    own = kept.get("metadata", {})
    if not isinstance(own, dict):
        raise ValueError("the response is not an object: its metadata have the wrong type")
    kept["metadata"] = {k: v for k, v in own.items() if k != TOKEN} | {SOURCE: mark}
    return orjson.dumps(kept)


# --- uploads ---------------------------------------------------------------------------------


def metadata_of(name: str, token: str | None) -> bytes:
    """Return the metadata that an upload begins with."""
    more = {"metadata": {TOKEN: token}} if token is not None else {}
    return orjson.dumps({"name": name, "contentType": "application/octet-stream", **more})


def multipart(metadata: bytes, data: bytes) -> tuple[str, bytes]:
    """Return content type and body of an upload of ``data`` with its metadata."""
    number, boundary = 0, b"=asynccommit="
    while b"--" + boundary in data or b"--" + boundary in metadata:
        number += 1
        boundary = b"=asynccommit=%d=" % number
    body = (
        b"--%b\r\ncontent-type: application/json; charset=UTF-8\r\n\r\n%b\r\n"
        b"--%b\r\ncontent-type: application/octet-stream\r\n\r\n%b\r\n--%b--\r\n"
        % (boundary, metadata, boundary, data, boundary)
    )
    return f'multipart/related; boundary="{boundary.decode()}"', body
