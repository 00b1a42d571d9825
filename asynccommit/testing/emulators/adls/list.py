"""Serve the listings of the blob endpoint, in XML."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping

from asynccommit.testing.emulators.adls.call import AdlsCall, number
from asynccommit.testing.emulators.adls.wire import http_date, xml_text
from asynccommit.testing.models.adls.account import AdlsAccount, Filesystem, Node, Refusal
from asynccommit.testing.models.adls.listing import (
    encode_token,
    listing_place,
    listing_subject,
)
from asynccommit.testing.models.adls.refusals import refusal

_Entries = tuple[list[tuple[str, Node]], str | None]

_XML_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*").fullmatch
_HEAD = '\ufeff<?xml version="1.0" encoding="utf-8"?>'

_NO_POLICIES = (
    "<HasImmutabilityPolicy>false</HasImmutabilityPolicy><HasLegalHold>false</HasLegalHold>"
)


def containers_xml(
    call: AdlsCall, scheme: str, found: Iterable[Filesystem], token: str | None
) -> bytes:
    """Return a page of containers."""
    with_metadata = "metadata" in call.query.get("include", "").split(",")
    shown = "".join(_container(_, with_metadata) for _ in found)
    return results_xml(call, scheme, "", f"<Containers>{shown}</Containers>", token)


def _container(found: Filesystem, with_metadata: bool) -> str:
    metadata = _metadata(found.properties) if with_metadata else ""
    public = f"<PublicAccess>{found.public}</PublicAccess>" if found.public else ""
    if found.scope is not None:
        fixed = "true" if found.scope_fixed else "false"
        public += (
            f"<DefaultEncryptionScope>{xml_text(found.scope)}</DefaultEncryptionScope>"
            f"<DenyEncryptionScopeOverride>{fixed}</DenyEncryptionScopeOverride>"
        )
    return (
        f"<Container><Name>{xml_text(found.name)}</Name><Properties>"
        f"<Last-Modified>{http_date(found.modified)}</Last-Modified>"
        f'<Etag>"{found.etag}"</Etag><LeaseStatus>unlocked</LeaseStatus>'
        f"<LeaseState>available</LeaseState>{_NO_POLICIES}{public}</Properties>{metadata}</Container>"
    )


def results_xml(
    call: AdlsCall, scheme: str, attributes: str, content: str, token: str | None
) -> bytes:
    """Return a page of a listing, with the parameters that it was asked with."""
    query = call.query
    asked = "".join(
        f"<{tag}>{xml_text(query[key])}</{tag}>"
        for key, tag in (
            ("prefix", "Prefix"),
            ("marker", "Marker"),
            ("maxresults", "MaxResults"),
            ("delimiter", "Delimiter"),
        )
        if query.get(key)
    )
    endpoint = f"{scheme}://{xml_text(call.headers.get('host', ''))}/{call.account}/"
    return (
        f'{_HEAD}<EnumerationResults ServiceEndpoint="{endpoint}"{attributes}>'
        f"{asked}{content}<NextMarker>{xml_text(token or '')}</NextMarker></EnumerationResults>"
    ).encode()


def blobs_xml(
    account: AdlsAccount, call: AdlsCall, scheme: str, uncommitted: Mapping[str, float]
) -> bytes:
    """Return a page of the blobs with the given prefix.

    ``uncommitted`` are the blobs that have blocks and no list, and the times of those.
    """
    query = call.query
    delimiter = query.get("delimiter", "")
    if delimiter not in ("", "/"):
        raise refusal("InvalidQueryParameterValue")
    prefix = query.get("prefix", "")
    directory = prefix.rpartition("/")[0]
    entries, token = _page(account, call, directory, recursive=not delimiter)
    included = query.get("include", "").lower().split(",")
    if uncommitted and "uncommittedblobs" in included:
        entries, token = _with_uncommitted(call, (entries, token), directory, uncommitted)
    shown = "".join(
        _entry(account, name, node, delimiter, included)
        for name, node in entries
        if name.startswith(prefix)
    )
    attributes = f' ContainerName="{xml_text(call.filesystem)}"'
    return results_xml(call, scheme, attributes, f"<Blobs>{shown}</Blobs>", token)


def _page(account: AdlsAccount, call: AdlsCall, directory: str, *, recursive: bool) -> _Entries:
    """Return a page of a directory; empty if it is missing or a file."""
    try:
        return account.list(
            call.filesystem,
            directory.strip("/"),
            recursive=recursive,
            limit=number(call.query, "maxresults"),
            token=call.query.get("marker") or None,
            start=_start(call, directory),
        )
    except Refusal as error:
        if error.status == 400 or error.code == "FilesystemNotFound":
            raise
        return [], None


def _with_uncommitted(
    call: AdlsCall, page: _Entries, directory: str, uncommitted: Mapping[str, float]
) -> _Entries:
    """Add to a page the uncommitted blobs between its beginning and its end.

    Their properties other than the length, which is 0, are inferred.
    """
    entries, token = page
    recursive = not call.query.get("delimiter")
    base = f"{directory}/" if directory else ""
    marker = call.query.get("marker", "")
    after = listing_place(marker) if marker else []
    merged = dict(entries)
    for path, modified in uncommitted.items():
        names = path.removeprefix(base).split("/")
        if not path.startswith(base) or names <= after:
            continue
        if token and names > listing_place(token):
            continue
        blob = Node(None, 0, modified)
        if recursive or len(names) == 1:
            merged.setdefault(path, blob)
        elif base + names[0] not in merged:
            merged[base + names[0]] = parent = Node({names[1]: blob}, 0, modified)
            parent.more().virtual = True
    ordered = sorted(merged.items(), key=lambda entry: entry[0].split("/"))
    most = number(call.query, "maxresults") or len(ordered)
    if len(ordered) > most:
        del ordered[most:]
        last = ordered[-1][0].removeprefix(base)
        token = encode_token(listing_subject(directory.strip("/"), recursive), last)
    return ordered, token


def _start(call: AdlsCall, directory: str) -> str | None:
    """Return where a listing begins, as a path in ``directory``."""
    start = call.query.get("startfrom", "")
    base = f"{directory}/" if directory else ""
    if start.startswith(base):
        return start[len(base) :].strip("/") or None
    return None if start < base else "\U0010ffff"


def _entry(
    account: AdlsAccount, name: str, node: Node, delimiter: str, included: Container[str]
) -> str:
    """Return a path in a listing.

    In a flat account a directory is a prefix of names, and a blob only if it was made as one.
    """
    if not node.is_dir or (account.hns and not delimiter):
        return _blob(account, name, node, included)
    if account.hns:
        return _prefix(name)
    marker = "" if node.virtual else _blob(account, name, node, included)
    return marker + (_prefix(name) if delimiter and node.children else "")


def _prefix(name: str) -> str:
    return f"<BlobPrefix><Name>{xml_text(name)}/</Name></BlobPrefix>"


def _blob(account: AdlsAccount, name: str, node: Node, included: Container[str]) -> str:
    kind = "directory" if node.is_dir else "file"
    content = node.headers.get("content-type", "application/octet-stream")
    state = account.lease_state(node)
    locked = "locked" if state in ("leased", "breaking") else "unlocked"
    own = {**node.properties, "hdi_isfolder": "true"} if node.is_dir else node.properties
    return (
        f"<Blob><Name>{xml_text(name)}</Name><Properties>"
        f"<Creation-Time>{http_date(node.created)}</Creation-Time>"
        f"<Last-Modified>{http_date(node.modified)}</Last-Modified><Etag>{node.etag}</Etag>"
        f"<ResourceType>{kind}</ResourceType><Content-Length>{node.size}</Content-Length>"
        f"<Content-Type>{xml_text(content)}</Content-Type>{_content(node)}"
        f"{_blob_type(node)}"
        f"<LeaseStatus>{locked}</LeaseStatus><LeaseState>{state}</LeaseState>"
        f"<ServerEncrypted>true</ServerEncrypted></Properties>"
        f"{_metadata(own) if 'metadata' in included else ''}"
        f"{tags_xml(node.tags) if node.tags and 'tags' in included else ''}</Blob>"
    )


def tags_xml(tags: Mapping[str, str]) -> str:
    """Return tags as an element."""
    shown = "".join(
        f"<Tag><Key>{xml_text(name)}</Key><Value>{xml_text(value)}</Value></Tag>"
        for name, value in tags.items()
    )
    return f"<Tags><TagSet>{shown}</TagSet></Tags>"


def _blob_type(node: Node) -> str:
    """Return the type of a blob; only block blobs have a tier."""
    if node.append_blob is None:
        return "<BlobType>BlockBlob</BlobType><AccessTier>Hot</AccessTier>"
    sealed = "<Sealed>true</Sealed>" if node.append_blob.sealed else ""
    return f"<BlobType>AppendBlob</BlobType>{sealed}"


def _content(node: Node) -> str:
    tags = ("Content-Encoding", "Content-Language", "Content-MD5", "Cache-Control")
    return "".join(
        f"<{tag}>{xml_text(node.headers[tag.lower()])}</{tag}>"
        for tag in tags
        if tag.lower() in node.headers
    )


def _metadata(values: Mapping[str, str]) -> str:
    shown = "".join(
        f"<{name}>{xml_text(value)}</{name}>"
        for name, value in values.items()
        if _XML_NAME(name)  # The dfs endpoint accepts other names too; they are not listed here.
    )
    return f"<Metadata>{shown}</Metadata>" if shown else ""
