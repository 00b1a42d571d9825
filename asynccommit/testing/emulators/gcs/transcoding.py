"""Decompress stored objects for clients that do not ask for gzip.

An object that is stored as gzip, and says so in ``contentEncoding``, is served decompressed. The
response then has neither ``Content-Encoding`` nor ``Content-Length``, and ``Range`` is ignored. It
is served as it is stored if the request has ``Accept-Encoding: gzip``, or if the object's
``cacheControl`` has ``no-transform``.

Source: https://cloud.google.com/storage/docs/transcoding
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping

from asynccommit.testing.models.gcs.objects import GcsObject

GUNZIPPED: Mapping[str, str] = {
    "Transfer-Encoding": "chunked",
    "Vary": "Accept-Encoding",
    "X-Guploader-Response-Body-Transformations": "gunzipped",
}
"""Headers of a response that was decompressed."""


def decompressed(found: GcsObject, headers: Mapping[str, str]) -> bytes | None:
    """Return the decompressed bytes of an object.

    They are ``None`` if the object is served as it is stored. An object whose ``contentEncoding``
    is wrong is served as it is stored, too (inferred).
    """
    details = found.details
    if details.content_encoding.lower() != "gzip" or _takes_gzip(headers):
        return None
    if "no-transform" in details.cache_control.lower():
        return None
    try:
        return gzip.decompress(found.content.data)
    except (OSError, EOFError, zlib.error):
        return None


def _takes_gzip(headers: Mapping[str, str]) -> bool:
    """Return whether a request asks for gzip, and not by a quality of 0."""
    for given in headers.get("accept-encoding", "").lower().split(","):
        coding, _, quality = given.partition(";")
        if coding.strip() == "gzip":
            return quality.replace(" ", "").removeprefix("q=").strip("0.") != "" or not quality
    return False
