"""The ``_SUCCESS`` marker of Hadoop's S3A committers.

The format is that of ``success.py``, which also reads this marker. Two fields differ: ``committer``
is the name used by ``fs.s3a.committer.name``, and ``filenames`` are keys with a leading slash, not
URIs.
"""

from __future__ import annotations

from dataclasses import replace

from asynccommit.errors import ManifestError
from asynccommit.formats.success import MAX_FILENAMES, SuccessData, encode_success

COMMITTERS = frozenset({"magic", "directory", "partitioned"})
"""The names that tools compare with."""


def encode_s3a_success(data: SuccessData) -> bytes:
    """Return the bytes of the marker.

    Args:
        data: the content; its file names are keys or absolute paths, of which the first
            ``success.MAX_FILENAMES`` are written.

    Raises:
        ManifestError: the committer is not one of S3A's, or a text cannot be encoded.
    """
    if data.committer not in COMMITTERS:
        known = ", ".join(sorted(COMMITTERS))
        raise ManifestError(
            "_SUCCESS", f"committer is {data.committer[:100]!r}: expected one of {known}"
        )
    names = [f"/{name.lstrip('/')}" for name in data.filenames[:MAX_FILENAMES]]
    return encode_success(replace(data, filenames=names), full=False)
