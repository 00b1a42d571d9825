"""Answers that end in the middle, of all stores that answer in JSON or XML."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.stores.adls.wire import entries_of
from asynccommit.stores.gcs.wire import folders_listed, listed
from asynccommit.stores.http.cut_short import CutShortError
from asynccommit.stores.s3.wire import listed as s3_listed

Read = Callable[[bytes], object]

ADLS = (
    b'{"paths":[{"contentLength":"1","etag":"0x1","lastModified":"Mon, 23 Nov 2026 00:00:00 GMT",'
    b'"name":"d/\xc3\xa9"},{"contentLength":"0","etag":"0x2","isDirectory":"true",'
    b'"lastModified":"Mon, 23 Nov 2026 00:00:00 GMT","name":"d/e"}]}'
)
GCS = b'{"kind":"storage#objects","prefixes":["d/e/"],"items":[]}'
FOLDERS = b'{"items":[{"name":"d/e/"}]}'
S3 = (
    b'<?xml version="1.0" encoding="UTF-8"?>\n'
    b'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>false'
    b"</IsTruncated><CommonPrefixes><Prefix>d/\xc3\xa9/</Prefix></CommonPrefixes>"
    b"</ListBucketResult>\n"
)
ANSWERS: dict[str, tuple[bytes, Read]] = {
    "adls": (ADLS, lambda body: entries_of(body, "/d")),
    "gcs": (GCS, lambda body: listed(body, "/d", tree=False)),
    "folders": (FOLDERS, lambda body: folders_listed(body, "/d")),
    "s3": (S3, lambda body: s3_listed(body, "/d")),
}


@pytest.mark.parametrize("store", ANSWERS)
@given(st.data())
def test_an_answer_that_ends_in_the_middle(store: str, data: st.DataObject) -> None:
    """An answer that is cut at any byte is told from a whole one."""
    body, read = ANSWERS[store]
    read(body)
    end = data.draw(st.integers(0, len(body.rstrip()) - 1))
    with pytest.raises(CutShortError, match="cut short"):
        read(body[:end])


@pytest.mark.parametrize("store", ANSWERS)
@pytest.mark.parametrize(
    "body",
    [
        b"<!DOCTYPE html><html><body>Sign in<br></body></html>",
        b"<html><body>Sign in",
        b"<html><body>Sign in</body></html>",
        b"[]",
        b"{]}",
        b"<a></b>",
    ],
)
def test_an_answer_of_another_kind(store: str, body: bytes) -> None:
    """A page of a proxy, or of another service, is no answer that was cut short."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # any text
        ANSWERS[store][1](body)

    assert not isinstance(caught.value, CutShortError)
