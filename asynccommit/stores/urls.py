"""Parse store URLs from users, and encoded paths in Hadoop's manifests.

Users type raw text, as Hadoop's ``new Path(String)`` reads it: ``file:/data/a b%``. Manifests and
markers hold the same place as a URI with percent-encoding: ``file:/data/a%20b%25``. Inside the
package a place is an ``Address`` with a decoded path.

The encoded characters are those that ``java.net.URI`` quotes in a path: ASCII outside of its
``pchar`` set, the C1 controls, and the space, line and paragraph separators. Other non-ASCII text
stays raw.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import unquote

from asynccommit.errors import UrlError
from asynccommit.options.checked import NO_TEXT
from asynccommit.redact import redact

_SPACES = "\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_QUOTED = rf'\x01-\x20"#%<>?\[\\\]^`{{|}}\x7f-\x9f{_SPACES}'
_TO_ENCODE = re.compile(f"[{_QUOTED}]")
# Two names of one store: manifests have the one that Hadoop knows.
_SAME = {"gcs": "gs"}
_BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})|%2[Ff]|%00")
_BARE = re.compile(f"[{_QUOTED.replace('%', '')}]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*")
# Of an old habit of Hadoop's: s3a://ACCESS:SECRET@bucket/path, the secret with slashes or not.
_SECRET = re.compile(r"://[^/@:]+:[^@]*@")
_BUCKETS = ("s3", "s3a", "s3n")
_AZURE = ("abfs", "abfss")
_AUTHORITY = re.compile(r"(?:[A-Za-z0-9._~@:$\[\]\-]|%20)*")
# Segments that decode to themselves and do not start with a dot; possessive, so linear.
_NO_DOT = r"A-Za-z0-9!$&'()*+,\-:;=@_~"
_PLAIN_NAME = re.compile(f"[{_NO_DOT}][{_NO_DOT}.]*").fullmatch
# Of the regular expressions of each directory only this one is compiled: a job has thousands.
_PLAIN_TAIL = re.compile(f"(?:/[{_NO_DOT}][{_NO_DOT}.]*+)++").fullmatch


@dataclass(frozen=True, slots=True)
class Address:
    """A place in a store.

    Attributes:
        scheme: in lower case: ``file``, ``abfs``, ``gs`` (for ``gcs`` too), ...
        authority: ``container@account.dfs.core.windows.net``, a bucket, ``""`` for ``file``; a
            space in it is ``%20``.
        path: decoded and absolute, without a slash at the end unless it is the root.
    """

    scheme: str
    authority: str
    path: str

    def encode(self) -> str:
        """Return the URI text of Hadoop: ``file:/a%20b``, ``abfs://c@acc/x``."""
        return self._store() + encode_path(self.path)

    def child(self, *names: str) -> Address:
        """Return the address below this one by ``names``."""
        base = self.path if self.path != "/" else ""
        return replace(self, path="/".join((base, *names)) or "/")

    def at(self, path: str) -> Address:
        """Return another decoded path of the same store."""
        return Address(self.scheme, self.authority, path)

    def same_store(self, other: Address) -> bool:
        """Return whether both have the same scheme and authority, in any case.

        Hadoop ignores case likewise.
        """
        return (self.scheme, self.authority.lower()) == (other.scheme, other.authority.lower())

    def __str__(self) -> str:
        return self._store() + self.path

    def _store(self) -> str:
        return f"{self.scheme}://{self.authority}" if self.authority else f"{self.scheme}:"


def parse_url(text: str) -> Address:
    """Read a URL or an absolute path as typed, without percent-decoding.

    The rules are those of Hadoop's ``new Path(String)``: the text before a colon in the first
    segment is the scheme, repeated slashes and one at the end collapse, ``.`` and ``..`` are
    resolved, and ``%``, ``?`` and ``#`` are ordinary characters.

    Raises:
        UrlError: the path is relative or leads above the root, or the text cannot be a path.
    """
    _refuse_no_text(text)
    scheme, authority, path = _split(text)
    if authority and not scheme:
        raise UrlError(f"{_show(text)} names a host but no scheme: write scheme://host/path")
    if not path.startswith("/"):
        if not authority:
            raise UrlError(f"{_show(text)} is a relative path: give an absolute path or a URL")
        path = "/"
    return _address(text, scheme or "file", authority, _normalize(text, path))


def decode_uri(text: str) -> Address:
    """Read a URI as a manifest holds it, strictly.

    ``.`` and ``..`` segments are kept, so that a check of containment can refuse them.

    Raises:
        UrlError: the URI has no scheme, a relative path, an empty segment, a query or fragment, a
            character that Hadoop would have encoded, or an escape that is not valid UTF-8, or that
            is a slash or NUL.
    """
    _refuse_no_text(text)
    scheme, authority, encoded = _split(text)
    if not scheme:
        raise UrlError(f"{_show(text)} has no scheme")
    if not encoded.startswith("/") and (encoded or not authority):
        raise UrlError(f"{_show(text)} is a relative path")
    if "//" in encoded or (encoded.endswith("/") and encoded != "/"):
        raise UrlError(f"{_show(text)} has an empty segment")
    return _address(text, scheme, authority, _decode(text, encoded or "/"))


def encode_path(path: str) -> str:
    """Percent-encode a decoded path as Hadoop does.

    Raises:
        UrlError: the path holds NUL or a lone surrogate (a file name that is not UTF-8).
    """
    _refuse_no_text(path)
    return _TO_ENCODE.sub(_escape, path)


class Under:
    """Reads the URIs of places that must lie strictly below one directory.

    Quick when a URI starts with the text of the directory and the rest needs no decoding.
    """

    def __init__(self, base: Address) -> None:
        self._base = base
        self._root = base.path.rstrip("/")
        encoded = encode_path(base.path).rstrip("/")
        authorities = (f"//{base.authority}",) if base.authority else ("", "//")
        self._heads = tuple(f"{base.scheme}:{start}{encoded}" for start in authorities)
        # The files of a partition follow each other: its encoded directory is decoded once.
        self._last: tuple[str | None, str] = (None, "")

    def path(self, uri: str) -> str:
        """Return the absolute decoded path of ``uri``.

        Raises:
            UrlError: ``uri`` cannot be read, or is not strictly below the directory.
        """
        for head in self._heads:
            if uri.startswith(head) and _PLAIN_TAIL(uri, len(head)):
                return self._root + uri[len(head) :]
        return self._slow(uri)

    def head(self, uri: str) -> str | None:
        """Return the directory with which ``uri`` begins, or ``None``."""
        return next(filter(uri.startswith, self._heads), None)

    @property
    def root(self) -> str:
        """The directory, without a slash at its end."""
        return self._root

    def _slow(self, uri: str) -> str:
        folder, _, name = uri.rpartition("/")
        plain = _PLAIN_NAME(name)
        encoded, decoded = self._last
        if plain and folder == encoded:
            return f"{decoded}/{name}"
        path = self._checked(uri)
        if plain:
            self._last = folder, path[: -len(name) - 1]
        return path

    def _checked(self, uri: str) -> str:
        address = decode_uri(uri)
        if not address.same_store(self._base):
            raise UrlError(f"{_show(uri)} is not in the same store as {_show(str(self._base))}")
        root, path = self._root, address.path
        if not path.startswith(f"{root}/") or path == "/":
            raise UrlError(f"{_show(uri)} is not below {_show(str(self._base))}")
        for name in path[len(root) + 1 :].split("/"):
            if name in (".", ".."):
                raise UrlError(f"{_show(uri)} has a segment {name!r}")
        return path


class UnderBoth:
    """Parses URIs of files and destinations, each below its directory.

    Nearly always both end alike, and the end is looked at once.

    Attributes:
        differed: some were read that perhaps do not end alike.
    """

    def __init__(self, source: Under, dest: Under) -> None:
        self.differed = False
        self._source, self._dest = source, dest
        self._from = self._to = ""

    def paths(self, source: str, dest: str) -> tuple[str, str]:
        """Return the absolute decoded paths of both.

        Raises ``UrlError`` as ``Under.path`` does.
        """
        end = source[len(self._from) :]
        if self._from and source.startswith(self._from) and dest == self._to + end:
            if _PLAIN_TAIL(end):
                return self._source.root + end, self._dest.root + end
        else:
            self._look(source, dest)
        return self._source.path(source), self._dest.path(dest)

    def _look(self, source: str, dest: str) -> None:
        """See how these begin, for those that come, and whether they end alike."""
        before, to = self._source.head(source), self._dest.head(dest)
        if before is None or to is None:
            self.differed = True
            return
        self.differed |= source[len(before) :] != dest[len(to) :]
        self._from, self._to = before, to


def _split(text: str) -> tuple[str, str, str]:
    """Split into scheme, authority and the rest, as Hadoop's ``Path`` does."""
    head, colon, rest = text.partition(":")
    if not colon or not head or "/" in head:
        head, rest = "", text
    if not rest.startswith("//") or len(rest) == 2:
        return head, "", rest
    authority, slash, path = rest[2:].partition("/")
    return head, authority, slash + path


def _address(text: str, scheme: str, authority: str, path: str) -> Address:
    if not _SCHEME.fullmatch(scheme):
        raise UrlError(f"{_show(text)} has no valid scheme")
    scheme = scheme.lower()
    if scheme in _BUCKETS and (":" in authority or "@" in authority):
        raise UrlError(
            f"{scheme}: a URL names only a bucket and must not hold keys: set key and secret, or "
            "profile"
        )
    if scheme in _AZURE and "@" in authority:
        # A workspace of OneLake; Hadoop encodes its space as well.
        authority = authority.replace(" ", "%20")
    if not _AUTHORITY.fullmatch(authority):
        raise UrlError(f"{_show(text)} has no valid host or container")
    scheme = _SAME.get(scheme, scheme)
    if scheme == "file" and authority:
        raise UrlError(f"{_show(text)} names a host: expected file:/path for a local path")
    return Address(scheme, authority, path)


def _normalize(text: str, path: str) -> str:
    names: list[str] = []
    for name in path.split("/"):
        if name == "..":
            if not names:
                raise UrlError(f"{_show(text)} leads above the root")
            names.pop()
        elif name not in ("", "."):
            names.append(name)
    return "/" + "/".join(names)


def _decode(text: str, encoded: str) -> str:
    if found := _BARE.search(encoded):
        raise UrlError(f"{_show(text)} holds {found[0]!r}, which must be percent-encoded")
    if found := _BAD_ESCAPE.search(encoded):
        escape = encoded[found.start() : found.start() + 3]
        raise UrlError(f"{_show(text)} holds the escape {escape!r}, which is not allowed in a path")
    try:
        return unquote(encoded, errors="strict")
    except UnicodeDecodeError:
        raise UrlError(f"{_show(text)} holds escapes that are not UTF-8") from None


def _escape(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode())


def _refuse_no_text(text: str) -> None:
    if not text:
        raise UrlError("the path is empty")
    if found := NO_TEXT.search(text):
        raise UrlError(f"{_show(text)} holds {found[0]!r}, which is not allowed in a path")


def _show(text: str) -> str:
    """Return ``text`` for a message: quoted, escaped and cut, without keys."""
    text = redact(_SECRET.sub("://...@", text))
    return repr(text if len(text) <= 300 else f"{text[:300]}...")
