"""The wire format of the Blob endpoint: listings, block lists, statuses.

Source: https://learn.microsoft.com/rest/api/storageservices/blob-service-rest-api
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote, unquote
from xml.etree.ElementTree import Element, ParseError, XMLParser

from asynccommit.stores.adls.wire import bare_etag, parse_date
from asynccommit.stores.base import Info, Kind
from asynccommit.stores.http.errors import unread_xml
from asynccommit.stores.http.flat import Listing, below_only, can_be_named, directories, prefix_of

PAGE = 5000  # entries of one page of a listing, the most that the service gives
META = "x-ms-meta-"
TOKEN = "asynccommit_token"  # a name of metadata is one of C#
FOLDER = "hdi_isfolder"  # what marks a directory for Hadoop's clients and Azure's tools
NUMBERS = 5  # digits of a block's number: a blob has 50,000 blocks

_BOM = b"\xef\xbb\xbf"
_MOST = 1_000_000  # tags: a page of 5,000 entries has a tenth, a list of 100,000 blocks a half
_BLOCK = re.compile(rf"(.{{1,58}})\.([0-9]{{{NUMBERS}}})", re.ASCII)


class Block(NamedTuple):
    """An uncommitted block of a blob.

    Attributes:
        upload_id: the upload that it belongs to; empty for a stranger's.
        number: its number in that upload.
        size: in bytes.
        name: as the service has it, in base64.
    """

    upload_id: str
    number: int
    size: int
    name: str


def block_name(upload_id: str, number: int) -> str:
    """Return the id of a block in base64.

    All blocks of one blob need ids of one length, whoever sends them.
    """
    return b64encode(f"{upload_id}.{number:0{NUMBERS}}".encode("ascii")).decode("ascii")


def block_list(names: Iterable[str]) -> bytes:
    """Return the body that makes a blob of uncommitted blocks only."""
    shown = "".join(f"<Uncommitted>{name}</Uncommitted>" for name in names)
    return f'<?xml version="1.0" encoding="utf-8"?><BlockList>{shown}</BlockList>'.encode("ascii")


def uncommitted(body: bytes) -> list[Block]:
    """Return the uncommitted blocks of a block list. Raises ``ValueError``."""
    found = []
    for section in children(parse(body, "BlockList"), "UncommittedBlocks"):
        for one in children(section, "Block"):
            said = values(one)
            name, size = said.get("Name", ""), said.get("Size", "")
            if not name or not size.isdecimal():
                raise ValueError("the response is not a list of blocks: one has no name or no size")
            found.append(_block(name, int(size)))
    return found


def _block(name: str, size: int) -> Block:
    try:
        ours = _BLOCK.fullmatch(b64decode(name, validate=True).decode("ascii"))
    except (NotBase64, ValueError):
        ours = None
    return Block(ours[1], int(ours[2]), size, name) if ours else Block("", 0, size, name)


# --- statuses --------------------------------------------------------------------------------


def info_of(path: str, headers: Mapping[str, str]) -> Info:
    """Return the facts about a blob in a status response.

    Raises ``ValueError``.
    """
    etag, size = bare_etag(headers.get("etag")), headers.get("content-length", "0")
    if etag is None or not size.isdecimal():
        raise ValueError("the response has no ETag")
    modified = parse_date(headers.get("last-modified"))
    if headers.get(META + FOLDER, "").lower() == "true":
        return Info(path, Kind.DIRECTORY, etag=etag, modified=modified)
    token = headers.get(META + TOKEN) or None
    return Info(path, Kind.FILE, int(size), etag, modified, token=token)


# --- listings --------------------------------------------------------------------------------


def list_query(path: str, token: str | None, *, tree: bool, include: str) -> dict[str, str | int]:
    """Return the parameters that ask for one page of a listing."""
    more = {"marker": token} if token else {}
    level = {} if tree else {"delimiter": "/"}
    return {
        "comp": "list",
        "restype": "container",
        "prefix": prefix_of(path),
        "maxresults": PAGE,
        "include": include,
        **level,
        **more,
    }


def listed(body: bytes, path: str, token: str | None, *, tree: bool) -> Listing:
    """Parse a page of a listing of ``path``.

    Raises:
        ValueError: the response is invalid, or does not continue from ``token``.
    """
    root = parse(body, "EnumerationResults")
    blobs = list(children(root, "Blobs"))
    entries = [_entry(one) for section in blobs for one in children(section, "Blob")]
    page = below_only(entries, path, _unchanged)
    if tree:
        return Listing(page.entries, page.itself, _next(root, token))
    names = ["/" + _name_of(one) for section in blobs for one in children(section, "BlobPrefix")]
    found = {info.path: info for info in directories(names, path) if info.is_dir}
    for info in page.entries:
        if _is_child(info.path, path) and info.path not in found:
            found[info.path] = Info(info.path, info.kind) if info.is_dir else info
    return Listing(list(found.values()), page.itself, _next(root, token))


def _entry(element: Element) -> Info:
    parts = {tag(child): child for child in element}
    said = values(parts["Properties"]) if "Properties" in parts else {}
    name, size = _name_of(element), said.get("Content-Length", "")
    if not name or not size.isdecimal():
        raise ValueError("the response is not a listing: an entry has no name or no size")
    etag, modified = bare_etag(said.get("Etag")), parse_date(said.get("Last-Modified"))
    metadata = values(parts["Metadata"]) if "Metadata" in parts else {}
    folder = any(_.lower() == FOLDER and metadata[_].lower() == "true" for _ in metadata)
    if folder or said.get("ResourceType") == "directory":
        return Info(f"/{name}", Kind.DIRECTORY, etag=etag, modified=modified)
    return Info(f"/{name}", Kind.FILE, int(size), etag, modified)


def _name_of(element: Element) -> str:
    """Return a name, which is encoded if XML could not have it."""
    for child in children(element, "Name"):
        text = child.text or ""
        return unquote(text) if child.get("Encoded", "").lower() == "true" else text
    return ""


def _unchanged(info: Info) -> Info:
    return info


def _is_child(path: str, directory: str) -> bool:
    name = path[len(prefix_of(directory)) + 1 :]
    return "/" not in name and can_be_named(name)


def _next(root: Element, token: str | None) -> str | None:
    more = values(root).get("NextMarker", "")
    if more and more == token:
        raise ValueError("the response continues where it began")
    return more or None


# --- XML -------------------------------------------------------------------------------------


def parse(body: bytes, name: str) -> Element:
    """Return the root of a response, which may be hostile.

    Raises ``ValueError``. No response of the service declares a document type, so one that does is
    refused before it is parsed: without it there are no entities that grow or lead elsewhere.
    """
    body = body.removeprefix(_BOM).strip()
    if b"<!" in body:
        raise ValueError("the response is not XML of Azure: it holds a declaration")
    if body.count(b"<") > _MOST:
        raise ValueError(f"the response is not XML of Azure: it has more than {_MOST:,} tags")
    parser = XMLParser(encoding="utf-8")
    try:
        parser.feed(body)
        root: Element = parser.close()
    except ParseError as error:
        raise unread_xml(body, error, "the response is not XML") from None
    if tag(root) != name:
        raise ValueError(f"the response is not {name}: it is {tag(root)[:80]!r}")
    return root


def tag(element: Element) -> str:
    """Return an element's name without its namespace."""
    return element.tag.rpartition("}")[2]


def values(element: Element) -> dict[str, str]:
    """Return the texts of the direct children by name; the last one counts."""
    return {tag(child): child.text or "" for child in element}


def children(element: Element, name: str) -> Iterator[Element]:
    """Return the direct children of that name."""
    return (child for child in element if tag(child) == name)


def metadata(pairs: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of metadata: names of C#, and values in ASCII."""
    return {
        f"{META}{name.lower().replace('-', '_')}": quote(value, safe=" !#$&'()*+,/:;=?@[]~")
        for name, value in pairs.items()
    }


def blocks_of(blocks: Sequence[Block], upload_id: str) -> list[Block]:
    """Return the blocks of an upload, in their order."""
    return sorted((one for one in blocks if one.upload_id == upload_id), key=lambda one: one.number)
