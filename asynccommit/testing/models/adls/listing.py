"""Walk a tree in pages, for listings and recursive deletes.

The order is depth first, a directory before its content, names by code point. A continuation token
holds the path at which it stopped, so that each unchanged entry is shown exactly once, whatever
changes meanwhile.
"""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from collections.abc import Iterator
from itertools import dropwhile, islice, pairwise
from typing import NamedTuple

from asynccommit.testing.models.adls.nodes import Node, link
from asynccommit.testing.models.adls.refusals import refusal

_START = "\x00"  # the place before all names, in tokens


class AdlsPage(NamedTuple):
    """One page: names with their nodes, and the next token.

    Names begin at the root of the filesystem.
    """

    entries: list[tuple[str, Node]]
    token: str | None


def encode_token(subject: str, place: str) -> str:
    """Return the token to continue a request on ``subject`` after ``place``."""
    return base64.b64encode(f"{subject}\n{place}".encode("utf-8", "surrogatepass")).decode()


def decode_token(subject: str, token: str) -> str:
    """Return the place of a token. Rejects one made for another request."""
    try:
        text = base64.b64decode(token, validate=True).decode("utf-8", "surrogatepass")
    except (binascii.Error, ValueError):
        raise refusal("InvalidQueryParameterValue") from None
    made_for, _, place = text.partition("\n")
    if made_for != subject:
        raise refusal("InvalidQueryParameterValue")
    return place


def listing_place(token: str) -> list[str]:
    """Return the names of the place after which a valid token continues."""
    place = base64.b64decode(token).decode("utf-8", "surrogatepass").partition("\n")[2]
    return place.split("/")


def list_page(
    directory: Node, path: str, recursive: bool, limit: int, token: str | None, empty: bool
) -> AdlsPage:
    """Return one page of a directory.

    Args:
        directory: node at ``path``.
        path: path from the root of the filesystem.
        recursive: list everything below, not only the children.
        limit: maximum number of entries on the page.
        token: token of the previous page.
        empty: the first page has only a token.
    """
    subject = listing_subject(path, recursive)
    if token is None and empty:
        return AdlsPage([], encode_token(subject, _START))
    place = decode_token(subject, token) if token else ""
    after = "" if place == _START else place
    base = f"{path}/" if path else ""
    if recursive:
        walk = _below(directory, base, after.split("/") if after else [])
        entries = [entry for entry, _ in zip(walk, range(limit + 1), strict=False)]
    else:
        entries = _children(directory, base, after, limit + 1)
    return _cut(entries, limit, subject, base)


def list_page_from(directory: Node, path: str, recursive: bool, limit: int, start: str) -> AdlsPage:
    """Return the first page of a listing that begins at ``start``.

    Of a listing that is not recursive, only the first name of ``start`` counts.
    """
    base = f"{path}/" if path else ""
    first = start.split("/") if recursive else start.split("/")[:1]
    below = _below(directory, base, []) if recursive else iter(_children(directory, base, "", -1))
    rest = dropwhile(lambda entry: entry[0][len(base) :].split("/") < first, below)
    return _cut(list(islice(rest, limit + 1)), limit, listing_subject(path, recursive), base)


def listing_subject(path: str, recursive: bool) -> str:
    """Return what the tokens of a listing are for."""
    place = binascii.crc32(path.encode("utf-8", "replace"))
    return f"{'all' if recursive else 'list'} {place:x}"


def _cut(entries: list[tuple[str, Node]], limit: int, subject: str, base: str) -> AdlsPage:
    if len(entries) <= limit:
        return AdlsPage(entries, None)
    del entries[limit:]
    return AdlsPage(entries, encode_token(subject, entries[-1][0][len(base) :]))


def sorted_names(directory: Node) -> list[str]:
    """Return the names in a directory, in order."""
    if directory.names is None:
        directory.names = sorted(directory.children or ())
    return directory.names


def _children(directory: Node, base: str, after: str, most: int) -> list[tuple[str, Node]]:
    names = sorted_names(directory)
    start = bisect_right(names, after) if after else 0
    children = directory.children or {}
    end = len(names) if most < 0 else start + most
    return [(base + name, children[name]) for name in names[start:end]]


def _below(directory: Node, base: str, after: list[str]) -> Iterator[tuple[str, Node]]:
    """Yield everything below ``directory`` after the path ``after``."""
    stack = [_resume(directory, base, after)]
    # Along the path that was shown last: the rest of each directory on it comes after it.
    for depth in range(1, len(after)):
        child = (directory.children or {}).get(after[depth - 1])
        if child is None or not child.is_dir:
            break
        directory, base = child, f"{base}{after[depth - 1]}/"
        stack.append(_resume(directory, base, after[depth:]))
    else:
        last = (directory.children or {}).get(after[-1]) if after else None
        if last is not None and last.is_dir:
            stack.append(_resume(last, f"{base}{after[-1]}/", []))
    while stack:
        for path, node in stack[-1]:
            yield path, node
            if node.is_dir:
                stack.append(_resume(node, f"{path}/", []))
                break
        else:
            stack.pop()


def _resume(directory: Node, base: str, after: list[str]) -> Iterator[tuple[str, Node]]:
    """Yield the children of one directory after the first name of ``after``."""
    names = sorted_names(directory)
    start = bisect_right(names, after[0]) if after else 0
    children = directory.children or {}
    for name in names[start:]:
        yield base + name, children[name]


def prune(directory: Node, most: int) -> int:
    """Delete up to ``most`` nodes below ``directory``, innermost first.

    Returns how many. Uses ``popitem``: finding the first entry of a dict whose first entries are
    gone takes longer each time.
    """
    done = 0
    begun = [("", directory)]
    while done < most:
        here = begun[-1][1]
        if here.children:
            here.names = None
            name, child = here.children.popitem()
            if child.children:
                begun.append((name, child))
                continue
        elif len(begun) == 1:
            break
        else:
            begun.pop()
        done += 1
    for (_, parent), (name, child) in pairwise(begun):
        link(parent, name, child)
    return done
