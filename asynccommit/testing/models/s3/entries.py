"""What the keys of a bucket are to the caller of a store: files, and directories by their names."""

from __future__ import annotations

from asynccommit.stores.base import Info, Kind
from asynccommit.testing.models.s3.objects import S3Object

TOKEN = "asynccommit-token"
"""The user metadata that marks a write."""


def prefix_of(path: str) -> str:
    """Return what the keys of everything below a directory start with."""
    return "" if path == "/" else f"{path[1:]}/"


def key_of(info: Info) -> str:
    """Return the key of an entry of a listing: of a directory, that of the object for it."""
    return prefix_of(info.path) if info.is_dir else info.path[1:]


def file_of(found: S3Object) -> Info:
    """Return what is said of an object under the path that is its key."""
    return Info(f"/{found.key}", Kind.FILE, found.size, found.etag, found.modified)


def directory_of(key: str, etag: str | None = None) -> Info:
    """Return what a key with a slash at its end stands for.

    Kind ``OTHER``, under the whole key, is what no path can name.
    """
    path = f"/{key[:-1]}"
    if all(word not in ("", ".", "..") for word in path.split("/")[1:]):
        return Info(path, Kind.DIRECTORY, etag=etag)
    return Info(f"/{key}", Kind.OTHER, etag=etag)


def entry_of(found: S3Object, *, tree: bool) -> Info:
    """Return what an object of a listing is taken for; only those of a tree are deleted by it."""
    if not found.key.endswith("/"):
        return file_of(found)
    return directory_of(found.key, found.etag if tree else None)
