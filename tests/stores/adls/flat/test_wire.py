"""Responses of the Blob endpoint are parsed within bounds: they may be hostile."""

from __future__ import annotations

import pytest

from asynccommit.stores.adls.flat.wire import (
    block_list,
    block_name,
    listed,
    metadata,
    uncommitted,
)
from asynccommit.stores.base import Info, Kind

LISTING = """\ufeff<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs>{}</Blobs>
<NextMarker>{}</NextMarker></EnumerationResults>"""
BLOB = """<Blob><Name{}>{}</Name><Properties><Content-Length>3</Content-Length><Etag>0x1</Etag>
</Properties><Metadata>{}</Metadata></Blob>"""


def test_a_block_is_known_by_its_id() -> None:
    """A stranger's id tells nothing, whatever bytes it has."""
    ours = block_name("job-attempt-random", 7)
    names = [ours, "/w==", "eA==", "not base64!"]
    body = "".join(f"<Block><Name>{name}</Name><Size>5</Size></Block>" for name in names)
    text = f"<BlockList><UncommittedBlocks>{body}</UncommittedBlocks></BlockList>"

    found = uncommitted(text.encode())

    assert [(one.upload_id, one.number) for one in found] == [
        ("job-attempt-random", 7),
        ("", 0),
        ("", 0),
        ("", 0),
    ]


def test_a_list_names_uncommitted_blocks_only() -> None:
    """Latest could commit a block of another attempt."""
    assert block_list(["YQ==", "Yg=="]).endswith(
        b"<BlockList><Uncommitted>YQ==</Uncommitted><Uncommitted>Yg==</Uncommitted></BlockList>"
    )


@pytest.mark.parametrize(
    "body, text",
    [
        ("<!DOCTYPE a [<!ENTITY b 'c'>]><BlockList/>", "declaration"),
        ("<Other/>", "not BlockList"),
        ("<BlockList><UncommittedBlocks><Block/></UncommittedBlocks></BlockList>", "no name"),
        ("<BlockList>", "not XML"),
        ("", "cut short"),
    ],
)
def test_a_list_of_blocks_that_is_none(body: str, text: str) -> None:
    """It is refused, and said why."""
    with pytest.raises(ValueError, match=text):
        uncommitted(body.encode())


def test_a_page_of_a_listing() -> None:
    """An encoded name is decoded; what is marked as a directory is one, once."""
    blobs = BLOB.format("", "d/f", "") + BLOB.format(' Encoded="true"', "d/%0D", "")
    blobs += BLOB.format("", "d/e", "<hdi_isfolder>true</hdi_isfolder>")
    blobs += "<BlobPrefix><Name>d/e/</Name></BlobPrefix>"
    body = LISTING.format(blobs, "more").encode()

    found = listed(body, "/d", None, tree=False)

    assert sorted(found.entries) == [
        Info("/d/\r", Kind.FILE, 3, "0x1"),
        Info("/d/e", Kind.DIRECTORY),
        Info("/d/f", Kind.FILE, 3, "0x1"),
    ]
    assert found.token == "more"


@pytest.mark.parametrize(
    "body, text",
    [
        (LISTING.format(BLOB.format("", "elsewhere", ""), ""), "not a listing of /d"),
        (LISTING.format("<Blob><Name>d/f</Name></Blob>", ""), "no size"),
        (LISTING.format("", "same"), "continues where it began"),
    ],
)
def test_a_page_that_is_none(body: str, text: str) -> None:
    """Names of other places, and a page that never ends, are refused."""
    with pytest.raises(ValueError, match=text):
        listed(body.encode(), "/d", "same", tree=True)


def test_metadata_are_identifiers_and_ascii() -> None:
    """The service refuses a hyphen in a name, and a header has no other letters."""
    assert metadata({"X-A-b": "ü 1"}) == {"x-ms-meta-x_a_b": "%C3%BC 1"}
