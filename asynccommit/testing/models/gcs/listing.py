"""List one page: objects and common prefixes in one order, by code point.

Source: https://cloud.google.com/storage/docs/json_api/v1/objects/list
"""

from __future__ import annotations

import base64
import binascii
import heapq
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

from asynccommit.testing.models.gcs.bucket import GcsBucket
from asynccommit.testing.models.gcs.names import behind
from asynccommit.testing.models.gcs.objects import GcsObject
from asynccommit.testing.models.gcs.refusals import refuse
from asynccommit.testing.models.gcs.versions import all_of, restorable

T = TypeVar("T")

MOST_RESULTS = 1000  # maximum number of results on a page, whatever the request asks for
_ITEM, _PREFIX = 0, 1
_GLOB = re.compile(r"(/\*\*/|^\*\*/)|(\*\*)|(\*)|(\?)|\[([^]]+)\]|\{([^}]*)\}")


class ListQuery(NamedTuple):
    """The parameters of a listing, named as on the wire but in snake case."""

    prefix: str = ""
    delimiter: str = ""
    start_offset: str = ""
    end_offset: str = ""
    include_trailing_delimiter: bool = False
    include_folders_as_prefixes: bool = False
    match_glob: str = ""
    versions: bool = False
    soft_deleted: bool = False
    page_token: str = ""
    max_results: int | None = None


EVERYTHING = ListQuery()


class GcsPage(NamedTuple):
    """One page: objects, common prefixes, and the next token or ``""``."""

    items: list[GcsObject]
    prefixes: list[str]
    token: str


Place = tuple[str, int, int]
"""The position of an entry: name, whether it is a prefix, and its generation if that counts."""

START: Place = ("", -1, 0)


def encode_token(place: Place) -> str:
    """Return the token to continue after a place."""
    name, rank, generation = place
    text = f"{rank} {generation} {name}"
    return base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).decode()


def decode_token(token: str) -> Place:
    """Return the place of a token. Rejects an invalid token."""
    try:
        text = base64.urlsafe_b64decode(token).decode("utf-8", "surrogatepass")
        rank, generation, name = text.split(" ", 2)
        return name, int(rank), int(generation)
    except (binascii.Error, ValueError):
        raise refuse("invalid", location_type="parameter", location="pageToken") from None


def check_most(asked: int | None, page: int) -> int:
    """Return the maximum number of entries on a page.

    Rejects an invalid number.
    """
    if asked is not None and asked < 1:
        raise refuse(
            "invalid",
            f"Invalid unsigned integer value: '{asked}'.",
            location_type="parameter",
            location="maxResults",
        )
    return min(asked or MOST_RESULTS, page, MOST_RESULTS)


def list_page(bucket: GcsBucket, query: ListQuery, page: int, empty: bool, now: float) -> GcsPage:
    """Return one page of a bucket.

    Args:
        bucket: bucket to list.
        query: parameters of the listing.
        page: maximum number of entries.
        empty: the first page has only a token.
        now: time in seconds, for soft-deleted objects.
    """
    most = check_most(query.max_results, page)
    _check(bucket, query)
    if empty and not query.page_token:
        return GcsPage([], [], encode_token(START))
    after = decode_token(query.page_token) if query.page_token else START
    entries = _objects(bucket, query, after, now)
    if query.include_folders_as_prefixes:
        entries = _distinct(heapq.merge(entries, _folders(bucket, query, after), key=_place))
    if query.match_glob:
        matches = glob_pattern(query.match_glob).fullmatch
        entries = (entry for entry in entries if matches(entry[0][0]))
    shown = list(islice(entries, most + 1))
    token = encode_token(shown[most - 1][0]) if len(shown) > most else ""
    del shown[most:]
    items = [found for _, found in shown if found is not None]
    return GcsPage(items, [place[0] for place, _ in shown if place[1] == _PREFIX], token)


def walk(
    names: Sequence[str],
    found: Callable[[str], Sequence[T]],
    query: ListQuery,
    after: Place,
    generation: Callable[[T], int] | None = None,
) -> Iterator[tuple[Place, T | None]]:
    """Yield the entries after a place; ``None`` for common prefixes.

    Args:
        names: names in order.
        found: returns the items of a name.
        query: prefix, delimiter and offsets are used.
        after: the place.
        generation: returns the generation that distinguishes items of one name.
    """
    prefix, delimiter, start, end = query[:4]
    resumed = behind(after[0]) if after[1] == _PREFIX else after[0]
    index = bisect_left(names, max(prefix, start, resumed))
    while index < len(names):
        name = names[index]
        index += 1
        if not name.startswith(prefix) or (end and name >= end):
            return
        cut = name.find(delimiter, len(prefix)) if delimiter else -1
        group = name[: cut + len(delimiter)] if cut >= 0 else ""
        if not group or (query.include_trailing_delimiter and group == name):
            for item in found(name):
                place = (name, _ITEM, generation(item) if generation else 0)
                if place > after:
                    yield place, item
        if group:
            if _any_of(names, index - 1, group, found):
                yield (group, _PREFIX, 0), None
            index = bisect_left(names, behind(group), index)


def glob_pattern(glob: str) -> re.Pattern[str]:
    """Return the regular expression of a glob.

    Source: https://cloud.google.com/storage/docs/json_api/v1/objects/list#list-objects-and-prefixes-using-glob
    """
    pattern, place = "", 0
    for match in _GLOB.finditer(glob):
        pattern += re.escape(glob[place : match.start()]) + _piece(match)
        place = match.end()
    try:
        return re.compile(pattern + re.escape(glob[place:]), re.DOTALL)
    except re.error:
        raise refuse("invalid", location_type="parameter", location="matchGlob") from None


def _piece(match: re.Match[str]) -> str:
    directories, anything, name, one, characters, choices = match.groups()
    if directories:
        return "(?:.*/)?" if directories[0] == "*" else "/(?:.*/)?"
    if anything:
        return ".*"
    if name:
        return "[^/]*"
    if one:
        return "[^/]"
    if characters:
        inner = characters.replace("\\", r"\\")
        return f"[^{inner[1:]}]" if inner[0] == "!" else f"[{inner}]"
    return f"(?:{'|'.join(re.escape(choice) for choice in choices.split(','))})"


def _check(bucket: GcsBucket, query: ListQuery) -> None:
    folders, glob = query.include_folders_as_prefixes, query.match_glob
    if (folders and query.delimiter != "/") or (glob and query.delimiter not in ("", "/")):
        raise refuse("invalid", location_type="parameter", location="delimiter")
    if query.versions and query.soft_deleted:
        raise refuse("invalid", location_type="parameter", location="softDeleted")


def _objects(
    bucket: GcsBucket, query: ListQuery, after: Place, now: float
) -> Iterator[tuple[Place, GcsObject | None]]:
    """Yield the entries of objects."""
    if query.versions:
        names = sorted(bucket.objects.keys() | bucket.noncurrent.keys())
        return walk(names, lambda name: all_of(bucket, name), query, after, _generation)
    if query.soft_deleted:
        names = sorted(bucket.soft_deleted)
        return walk(names, lambda name: restorable(bucket, name, now), query, after, _generation)
    objects = bucket.objects
    return walk(
        bucket.names.in_order(),
        lambda name: (objects[name],) if name in objects else (),
        query,
        after,
    )


def _folders(
    bucket: GcsBucket, query: ListQuery, after: Place
) -> Iterator[tuple[Place, GcsObject | None]]:
    """Yield the entries of folders, including empty ones."""
    folders = bucket.folders
    names = bucket.folder_names.in_order()
    for place, _ in walk(names, lambda name: (name,) if name in folders else (), query, after):
        if place[1] == _PREFIX:
            yield place, None


def _place(entry: tuple[Place, GcsObject | None]) -> Place:
    return entry[0]


def _generation(found: GcsObject) -> int:
    return found.generation


def _any_of(
    names: Sequence[str], index: int, group: str, found: Callable[[str], Sequence[object]]
) -> bool:
    """Return whether a common prefix has anything below it that still exists."""
    while index < len(names) and names[index].startswith(group):
        if found(names[index]):
            return True
        index += 1
    return False


def _distinct(
    entries: Iterable[tuple[Place, GcsObject | None]],
) -> Iterator[tuple[Place, GcsObject | None]]:
    last = START
    for place, found in entries:
        if place != last:
            yield place, found
        last = place
