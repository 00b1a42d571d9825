"""Unique file names, as Hadoop's staging committers make them."""

from __future__ import annotations

from asynccommit.errors import OptionError


def add_uuid(path: str, uuid: str) -> str:
    """Insert the job's id into a file name, before the first dot of the name.

    A path that already contains the id is returned unchanged: Spark puts it into names by itself.

    Args:
        path: path of the file, with slashes; relative to the destination.
        uuid: the job's id.

    Raises:
        OptionError: the path does not name a file, or the id is empty.
    """
    if not uuid:
        raise OptionError("unique file names need the job id")
    folder, slash, name = path.rpartition("/")
    if not name:
        raise OptionError(
            f"{path[:300]!r} does not name a file, so nothing can be added to its name"
        )
    if uuid in path:
        return path
    stem, dot, extension = name.partition(".")
    return f"{folder}{slash}{stem}-{uuid}{dot}{extension}"
