"""The wire format of S3: names, objects, listings, uploads."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from urllib.parse import quote, unquote_plus
from xml.etree.ElementTree import Element

from asynccommit.stores.base import Info, Kind
from asynccommit.stores.http.flat import (
    Listing,
    below_only,
    can_be_named,
    check_length,
    directories,
    placeholder,
    prefix_of,
)
from asynccommit.stores.multipart import PartPage, Upload, UploadPage
from asynccommit.stores.parts import Part
from asynccommit.stores.s3.checksums import KINDS
from asynccommit.stores.s3.xml import HEAD, SPACE, children, escape, parse, tag, values

TOKEN = "x-amz-meta-asynccommit-token"  # the header that a put leaves its token under

_plain = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9_.~-]+").fullmatch
_etag = re.compile(r'(?:W/)?"?([^"\s]{1,1000})"?').fullmatch
_parse_date = datetime.fromisoformat
_new = tuple.__new__
_FILE = Kind.FILE


# --- names -----------------------------------------------------------------------------------


def encode(path: str) -> str:
    """Return the percent-encoded key of an absolute decoded path.

    Slashes are not encoded.
    """
    folder, _, name = path.rpartition("/")
    text = _folder(folder) + (name if _plain(name) else _name(name))
    check_length(path, text)
    return text


def encode_raw(key: str) -> str:
    """Percent-encode the key of an object that is there, whatever it is."""
    return quote(key, safe="/~")


@lru_cache(maxsize=4096)
def _folder(path: str) -> str:
    return "".join(f"{_name(name)}/" for name in path.split("/")[1:])


def _name(name: str) -> str:
    if "\0" in name:
        raise ValueError(f"{name!r} holds {chr(0)!r}, which is not allowed in a path")
    if not can_be_named(name):
        raise ValueError(f"{name!r} is not a valid file name: clients would resolve it")
    try:
        return quote(name, safe="~")
    except UnicodeEncodeError:
        raise ValueError(f"{name!r} is not Unicode text") from None


# --- objects ---------------------------------------------------------------------------------


def bare_etag(text: str) -> str:
    """Return an etag without its quotes.

    Raises ``ValueError`` if there is no etag.
    """
    found = _etag(text)
    if not found:
        raise ValueError("the response has no etag")
    return found[1]


def quoted(etag: str) -> str:
    """Return an etag as requests have it."""
    return f'"{etag.strip(chr(34))}"'


def info_of(path: str, headers: Mapping[str, str]) -> Info:
    """Return the facts about the object at ``path`` in response headers.

    Raises:
        ValueError: the headers are invalid.
    """
    etag = bare_etag(headers.get("etag", ""))
    size = headers.get("content-length", "")
    if not size.isdecimal():
        raise ValueError("the response has no size")
    modified = parse_http_date(headers.get("last-modified"))
    return Info(path, _FILE, int(size), etag, modified, token=headers.get(TOKEN))


def parse_http_date(text: str | None) -> float:
    """Parse the date of a header into seconds since the epoch; 0.0 if invalid."""
    try:
        return parsedate_to_datetime(text or "").timestamp()
    except (TypeError, ValueError, OverflowError):
        return 0.0


def parse_date(text: str) -> float:
    """Parse a date in XML into whole seconds since the epoch; 0.0 if invalid.

    Some servers write fractions in XML, but not in headers.
    """
    try:
        return float(int(_parse_date(text).timestamp()))
    except (ValueError, OverflowError):
        return 0.0


# --- listings --------------------------------------------------------------------------------


def list_query(path: str, most: int, token: str | None, *, tree: bool) -> str:
    """Return the sorted query of a page of a listing of ``path``."""
    start = f"continuation-token={quote(token, safe='~')}&" if token else ""
    level = "" if tree else "delimiter=%2F&"
    prefix = quote(prefix_of(path), safe="~")
    return f"{start}{level}encoding-type=url&list-type=2&max-keys={most}&prefix={prefix}"


def listed(body: bytes, path: str, token: str | None = None, *, tree: bool = False) -> Listing:
    """Parse a page of a listing of the directory ``path``.

    Objects whose names end in a slash are placeholders of directories, which have the etag of
    that object; other directories have none. What no path can name, with an empty segment or dots
    for one, is left out, but for the files of a whole tree: those can be deleted.

    Args:
        body: of the answer.
        path: of the directory.
        token: what the page was asked for by.
        tree: whether all below was asked for, not one level.

    Raises:
        ValueError: the response is invalid.
    """
    root = parse(body, "ListBucketResult")
    decode = _decoder(root)
    space = root.tag.removesuffix("ListBucketResult")
    items = root.iter(f"{space}Contents")
    entries = [_entry({_.tag: _.text for _ in item}, decode, space) for item in items]
    names = [
        "/" + decode(values(one).get("Prefix", "")) for one in children(root, "CommonPrefixes")
    ]
    page = below_only(entries, path, _seen)
    kept = page.entries if tree else [info for info in page.entries if _is_child(info.path, path)]
    named = [info for info in directories(names, path) if info.is_dir]
    return Listing(kept + named, page.itself, _next(root, token))


def _decoder(root: Element) -> Callable[[str], str]:
    said = next((child.text for child in children(root, "EncodingType")), "")
    return _unquote if (said or "").lower() == "url" else str


def _unquote(text: str) -> str:
    # The directory is the same for most entries of a page; names seldom need it.
    folder, slash, name = text.rpartition("/")
    if "%" in name or "+" in name:
        name = unquote_plus(name)
    return _unquoted(folder) + slash + name


_unquoted = lru_cache(maxsize=4096)(unquote_plus)


def _entry(found: dict[str, str | None], decode: Callable[[str], str], space: str) -> Info:
    key, size = found.get(f"{space}Key"), found.get(f"{space}Size") or ""
    if not key or not size.isdecimal():
        raise ValueError("the response is not a listing: an entry has no key or no size")
    modified = parse_date(found.get(f"{space}LastModified") or "")
    etag = bare_etag(found.get(f"{space}ETag") or "")
    # A third of the time of Info(...), once for every file of a listing.
    path = "/" + decode(key)
    return _new(Info, (path, _FILE, int(size), etag, modified, 0, True, None, 0.0, 0, None))


def _seen(info: Info) -> Info:
    """Return the kind and path of a listed object."""
    if info.path[-1] == "/":
        return placeholder(info.path, info.etag) or info
    return info


def _is_child(path: str, directory: str) -> bool:
    name = path[len(prefix_of(directory)) + 1 :]
    return "/" not in name and can_be_named(name)


def _next(root: Element, token: str | None) -> str | None:
    found = values(root)
    if found.get("IsTruncated", "").lower() != "true":
        return None
    more = found.get("NextContinuationToken", "")
    if not more or more == token:
        raise ValueError("the response is incomplete and has no token for the rest")
    return more


# --- uploads ---------------------------------------------------------------------------------


def upload_id_of(body: bytes) -> str:
    """Return the name of an upload that was begun. Raises ``ValueError``."""
    found = values(parse(body, "InitiateMultipartUploadResult")).get("UploadId", "")
    if not 0 < len(found) <= 2048:
        raise ValueError("the response has no upload id")
    return found


def completion(parts: Sequence[Part]) -> bytes:
    """Return the body that completes an upload of ``parts``."""
    text = "".join(
        f"<Part>{_checksum(part)}<ETag>{escape(quoted(part.etag))}</ETag>"
        f"<PartNumber>{number}</PartNumber></Part>"
        for number, part in enumerate(parts, 1)
    )
    name = "CompleteMultipartUpload"
    return f'{HEAD}<{name} xmlns="{SPACE}">{text}</{name}>'.encode()


def _checksum(part: Part) -> str:
    kind = part.algorithm.upper()
    if kind not in KINDS or not part.checksum:
        return ""
    return f"<Checksum{kind}>{escape(part.checksum)}</Checksum{kind}>"


def completed_etag(body: bytes) -> str:
    """Return the etag of what an upload was completed to.

    Raises ``ValueError``.
    """
    found = values(parse(body, "CompleteMultipartUploadResult"))
    return bare_etag(found.get("ETag", ""))


def uploads_query(path: str, most: int, token: str | None) -> str:
    """Return the sorted query of a page of the uploads below ``path``."""
    key, _, upload = (token or "").partition(" ")
    marker = f"key-marker={key}&" if key else ""
    after = f"&upload-id-marker={upload}" if upload else ""
    prefix = quote(prefix_of(path), safe="~")
    return f"encoding-type=url&{marker}max-uploads={most}&prefix={prefix}{after}&uploads"


def uploads_listed(body: bytes, path: str, token: str | None) -> UploadPage:
    """Parse a page of the uploads below ``path``.

    Raises:
        ValueError: the response is invalid, or does not continue from ``token``.
    """
    root = parse(body, "ListMultipartUploadsResult")
    decode, start = _decoder(root), "/" + prefix_of(path)
    entries = []
    for child in children(root, "Upload"):
        found = values(child)
        name, upload = "/" + decode(found.get("Key", "")), found.get("UploadId", "")
        if not upload or not name.startswith(start):
            raise ValueError(
                f"the response is not a list of uploads below {path}: it has {name[:300]}"
            )
        entries.append(Upload(name, upload, parse_date(found.get("Initiated", ""))))
    found = values(root)
    if found.get("IsTruncated", "").lower() != "true":
        return UploadPage(tuple(entries))
    key = decode(found.get("NextKeyMarker", ""))
    more = f"{quote(key, safe='~')} {quote(found.get('NextUploadIdMarker', ''), safe='~')}"
    if not key or more == token:
        raise ValueError("the response is incomplete and does not tell where the rest begins")
    return UploadPage(tuple(entries), more)


def parts_query(upload_id: str, most: int, token: str | None) -> str:
    """Return the query of a page of the parts of an upload, sorted by name."""
    after = f"&part-number-marker={token}" if token else ""
    return f"max-parts={most}{after}&uploadId={quote(upload_id, safe='~')}"


def parts_listed(body: bytes, token: str | None) -> PartPage:
    """Parse a page of the parts of an upload.

    Raises ``ValueError``.
    """
    root = parse(body, "ListPartsResult", "ListPartsResponse")  # the second one is moto's
    entries = tuple(map(_part, children(root, "Part")))
    found = values(root)
    if found.get("IsTruncated", "").lower() != "true":
        return PartPage(entries)
    more = found.get("NextPartNumberMarker", "")
    if not more.isdecimal() or int(more) <= int(token or 0):
        raise ValueError("the response is incomplete and does not tell where the rest begins")
    return PartPage(entries, more)


def _part(element: Element) -> tuple[int, Part, int]:
    found = values(element)
    number, size, etag = (found.get(name, "") for name in ("PartNumber", "Size", "ETag"))
    if not (number.isdecimal() and size.isdecimal() and etag):
        raise ValueError("the response is not a list of parts")
    kind = next((kind for kind in KINDS if found.get(f"Checksum{kind}")), "")
    return int(number), Part(etag, kind, found[f"Checksum{kind}"] if kind else ""), int(size)


# --- deletions -------------------------------------------------------------------------------


def deletion(entries: Sequence[tuple[str, str | None]]) -> bytes:
    """Return the body that deletes objects by key and, if given, etag."""
    text = "".join(
        f"<Object><Key>{escape(key)}</Key>{_condition(etag)}</Object>" for key, etag in entries
    )
    return f'{HEAD}<Delete xmlns="{SPACE}">{text}<Quiet>true</Quiet></Delete>'.encode()


def _condition(etag: str | None) -> str:
    return f"<ETag>{escape(quoted(etag))}</ETag>" if etag else ""


def not_deleted(body: bytes) -> dict[str, tuple[str, str]]:
    """Return code and message of each key that was not deleted.

    Raises ``ValueError``.
    """
    root = parse(body, "DeleteResult")
    found = {}
    for child in root:
        if tag(child) == "Error":
            said = values(child)
            found[said.get("Key", "")] = said.get("Code", ""), said.get("Message", "")
    return found
