"""Map the keys of a bucket to files and directories of a store."""

from __future__ import annotations

from asynccommit.stores.base import Info, Kind
from asynccommit.testing.models.s3.objects import S3Object

TOKEN = "asynccommit-token"
"""The user metadata that marks a write."""


def prefix_of(path: str) -> str:
    """Return the common prefix of all keys below a directory."""
    return "" if path == "/" else f"{path[1:]}/"


def key_of(info: Info) -> str:
    """Return the key of a listing entry.

    For a directory, that of its marker object.
    """
    return prefix_of(info.path) if info.is_dir else info.path[1:]


def file_of(found: S3Object) -> Info:
    """Return the entry of an object, with its key as path."""
    return Info(f"/{found.key}", Kind.FILE, found.size, found.etag, found.modified)


def directory_of(key: str, etag: str | None = None) -> Info:
    """Return the entry of a key that ends in a slash.

    It is of kind ``OTHER``, under the whole key, if no path can name it.
    """
    path = f"/{key[:-1]}"
    if all(word not in ("", ".", "..") for word in path.split("/")[1:]):
        return Info(path, Kind.DIRECTORY, etag=etag)
    return Info(f"/{key}", Kind.OTHER, etag=etag)


def entry_of(found: S3Object, *, tree: bool) -> Info:
    """Return the entry of an object in a listing.

    A directory's entry has an etag only in a tree listing, by which it is deleted.
    """
    if not found.key.endswith("/"):
        return file_of(found)
    return directory_of(found.key, found.etag if tree else None)
