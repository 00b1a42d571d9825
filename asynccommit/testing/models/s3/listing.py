"""List one page: objects and common prefixes in one order, by code point.

Source: https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import NamedTuple

from asynccommit.testing.models.gcs.names import SortedNames, behind
from asynccommit.testing.models.s3.objects import S3Object
from asynccommit.testing.models.s3.uploads import decode_marker, encode_marker


class S3Page(NamedTuple):
    """One page: objects, common prefixes, and the next token or ``""``."""

    objects: list[S3Object]
    prefixes: list[str]
    token: str = ""


def list_page(
    objects: Mapping[str, S3Object],
    names: SortedNames,
    prefix: str,
    delimiter: str,
    start_after: str,
    token: str,
    most: int,
) -> S3Page:
    """Return one page of the keys with ``prefix`` after ``start_after``.

    A token overrides ``start_after``. Keys with ``delimiter`` after the prefix are shown up to it,
    as one common prefix.
    """
    after = decode_marker(token, 1)[0] if token else start_after
    found, prefixes, last = list[S3Object](), list[str](), ""
    order = names.in_order()
    place = max(bisect_left(order, prefix), bisect_right(order, after) if after else 0)
    if delimiter and after.endswith(delimiter) and after.startswith(prefix) and after != prefix:
        place = max(place, bisect_left(order, behind(after)))
    while place < len(order) and order[place].startswith(prefix):
        name = order[place]
        if name not in objects:
            place += 1
            continue
        if len(found) + len(prefixes) == most:
            return S3Page(found, prefixes, encode_marker(last))
        cut = name.find(delimiter, len(prefix)) if delimiter else -1
        if cut < 0:
            last = name
            found.append(objects[name])
            place += 1
            continue
        last = name[: cut + len(delimiter)]
        prefixes.append(last)
        # Removed names may still be in the list; none of them is shown twice.
        place = bisect_left(order, behind(last))
    return S3Page(found, prefixes)
