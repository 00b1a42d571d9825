"""The wire format of Google Cloud Storage: names, etags, listings, uploads."""

from __future__ import annotations

import math
import re
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson

from asynccommit.stores.base import Info, Kind

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

LONGEST = 1024
"""Bytes of a name at most."""
_RESERVED = "/.well-known/acme-challenge/"  # whose objects the service keeps for certificates

_plain = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9_.~-]+").fullmatch
_bad = re.compile(r"[\r\n\0]").search
_generation = re.compile(r"([1-9][0-9]{0,18})(?:-[0-9a-f]{8})?", re.ASCII).fullmatch
_parse_date = datetime.fromisoformat
_new = tuple.__new__
_FILE = Kind.FILE


# --- names -----------------------------------------------------------------------------------


def encode(path: str) -> str:
    """Return the percent-encoded object name of an absolute decoded path.

    Slashes are encoded too.
    """
    folder, _, name = path.rpartition("/")
    text = _folder(folder) + (name if _plain(name) else _name(name))
    if len(text) > LONGEST and len(path.encode()) > LONGEST + 1:
        raise ValueError(f"the name {path[1:81]!r}... has more than {LONGEST} bytes")
    return text


def encode_raw(name: str) -> str:
    """Percent-encode the name of an object that is there, whatever it is."""
    return quote(name, safe="")


@lru_cache(maxsize=4096)
def _folder(path: str) -> str:
    if f"{path}/".startswith(_RESERVED):
        raise ValueError(f"{path!r} is reserved: no object's name may start so")
    return "".join(f"{_name(name)}%2F" for name in path.split("/")[1:])


def _name(name: str) -> str:
    if found := _bad(name):
        raise ValueError(f"{name!r} holds {found[0]!r}, which no name of an object may hold")
    if name in ("", ".", ".."):
        raise ValueError(f"{name!r} is no name of a file: clients would resolve it")
    try:
        return quote(name, safe="")
    except UnicodeEncodeError:
        raise ValueError(f"{name!r} is not Unicode text") from None


def prefix_of(path: str) -> str:
    """Return the decoded name prefix of all objects below ``path``."""
    return f"{path[1:]}/" if path != "/" else ""


def _can_be_named(name: str) -> bool:
    return name not in ("", ".", "..")


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
        raise ValueError(f"{etag[:80]!r} is no etag of Google Cloud Storage")
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
    """Return what the metadata of an object say of ``path``.

    Args:
        path: of the object.
        body: of the answer.

    Raises:
        ValueError: it is no such answer.
    """
    item = json_of(body)
    try:
        info = _entry(item)
    except (TypeError, KeyError, AttributeError, Base64Error, ValueError) as error:
        raise ValueError(f"the answer is no object's ({type(error).__name__}: {error})") from None
    if info.path != path:
        raise ValueError(f"the answer is about {info.path!r}")
    metadata = item.get("metadata")
    said = metadata if isinstance(metadata, dict) else {}
    token = said.get(TOKEN, said.get(SOURCE))
    return info._replace(token=token if isinstance(token, str) else None)


def json_of(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a response.

    Raises ``ValueError`` if the body is not a JSON object.
    """
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"the answer is no JSON ({error})") from None
    if not isinstance(found, dict):
        raise ValueError("the answer is no JSON object")
    return found


def _entry(item: dict[str, Any]) -> Info:
    # Google's own test server leaves the size of empty objects out.
    left_out = "size" not in item and item.get("crc32c") == _EMPTY
    generation, size = item["generation"], 0 if left_out else int(item["size"])
    if size < 0 or not generation.isdecimal():
        raise ValueError("size or generation is no number")
    crc = item.get("crc32c")
    etag = f"{generation}-{a2b_base64(crc).hex()}" if crc else generation
    # A third of the time of Info(...), once for every file of a listing.
    seconds = parse_date(item.get("updated"))
    held = _held(item) if len(item) > len(_KNOWN) else 0.0
    return _new(Info, ("/" + item["name"], _FILE, size, etag, seconds, 0, True, None, held, 0))


def _held(item: dict[str, Any]) -> float:
    """Return until when an object is kept as it is."""
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


class GcsListPage(NamedTuple):
    """One page of a listing.

    Attributes:
        entries: files, and directories where the listing is of one level.
        itself: whether the listed directory's own placeholder was among them.
        token: asks for the next page.
    """

    entries: list[Info]
    itself: bool
    token: str | None


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


def listed(body: bytes, path: str, *, tree: bool = False) -> GcsListPage:
    """Return what a page of a listing of the directory ``path`` says.

    Objects whose names end in a slash are placeholders of directories, which have the etag of
    that object; other directories have none. What no path can name, with
    an empty segment or dots for one, is left out, but for the files of a whole tree: those can be
    deleted.

    Raises:
        ValueError: it is no such answer.
    """
    found = json_of(body)
    if found.get("kind") != "storage#objects":
        raise ValueError("the answer is no listing")
    start = "/" + prefix_of(path)
    try:
        entries = [_entry(item) for item in found.get("items", ())]
        names = ["/" + prefix for prefix in found.get("prefixes", ())]
    except (TypeError, KeyError, AttributeError, Base64Error, ValueError) as error:
        raise ValueError(f"the answer is no listing ({type(error).__name__}: {error})") from None
    for info in entries:
        if not info.path.startswith(start):
            raise ValueError(f"the answer is no listing of {path}: it has {info.path!r}")
    itself = any(info.path == start for info in entries)
    kept = [seen for info in entries if (seen := _seen(info, tree)).path not in (path, start)]
    return GcsListPage(kept + _directories(names, start), itself, _token(found))


def _seen(info: Info, tree: bool) -> Info:
    """Return what an object of a listing is taken for.

    What no path can name is neither file nor directory, but in a tree, where it can be deleted.
    """
    if info.path[-1] == "/":
        found = _placeholder(info.path)
        if found is not None:
            return found._replace(etag=info.etag) if tree else found
        return info if tree else Info(info.path, Kind.OTHER)
    if info.path[-1] == "." and not tree and not _can_be_named(info.path.rpartition("/")[2]):
        return Info(info.path, Kind.OTHER)
    return info


def folders_listed(body: bytes, path: str) -> GcsListPage:
    """Return what a page of the folders below ``path`` says.

    Raises ``ValueError``.
    """
    found, start = json_of(body), "/" + prefix_of(path)
    try:
        names = ["/" + item["name"] for item in found.get("items", ())]
    except (TypeError, KeyError) as error:
        raise ValueError(f"the answer is no listing ({type(error).__name__})") from None
    entries = [
        Info(info.path[:-1], Kind.DIRECTORY) if info.kind is Kind.OTHER else info
        for info in _directories(names, start)
    ]
    return GcsListPage(entries, start in names, _token(found))


def _directories(names: list[str], start: str) -> list[Info]:
    for name in names:
        if not name.startswith(start) or name[-1] != "/":
            raise ValueError(f"the answer is no listing below {start}: it has {name!r}")
    return [_placeholder(name) or Info(name, Kind.OTHER) for name in names if name != start]


def _placeholder(name: str, etag: str | None = None) -> Info | None:
    """Return the directory that a name with a slash at its end stands for."""
    path = name[:-1]
    if all(map(_can_be_named, path.split("/")[1:])):
        return Info(path, Kind.DIRECTORY, etag=etag)
    return None


def _token(found: Mapping[str, Any]) -> str | None:
    token = found.get("nextPageToken") or None
    if token is not None and not isinstance(token, str):
        raise ValueError("the answer is no listing: its page token is no text")
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
        raise ValueError("the answer is no object's: its metadata are of another type")
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
