"""The entries of a manifest as checked paths of the store."""

from __future__ import annotations

from functools import partial
from typing import Any

from asynccommit.commit.layouts.layout import Layout
from asynccommit.commit.spill import Entry
from asynccommit.errors import UrlError
from asynccommit.formats.manifest import TaskManifest
from asynccommit.stores.urls import Under, UnderBoth, decode_uri

_MAX_NAME = 255
"""Maximum length of one name of a path in bytes, accepted by every filesystem and store."""

_new_entry: Any = partial(tuple.__new__, Entry)  # half the time of Entry(...), once for every file


def decode_entries(layout: Layout, manifest: TaskManifest) -> tuple[list[Entry], list[str]]:
    """Return the files and directories of a manifest as decoded paths.

    Raises ``UrlError`` for a source outside of the task attempt's directory and a destination
    that is outside of the job's, in its ``_temporary``, the success marker or too long.
    """
    base = layout.dest.at(layout.task_attempt_dir(manifest.task_attempt_id))
    said = decode_uri(manifest.task_attempt_dir)
    if said != base:
        text = f"taskAttemptDir {manifest.task_attempt_dir} is not {base.encode()}"
        if (said.path, said.authority.lower()) == (base.path, base.authority.lower()):
            text = f"this job was written to {said.at(layout.dest.path)}: use that URL"
        raise UrlError(text)
    dest = Under(layout.dest)
    both = UnderBoth(Under(base), dest)
    entries: list[Entry] = [
        _new_entry((*both.paths(s, d), size, etag)) for s, d, size, etag in manifest.files
    ]
    directories = [dest.path(entry.dest) for entry in manifest.directories if entry.dest]
    reserved = (layout.temporary, layout.success)
    for path in [*(entry.dest for entry in entries), *directories]:
        if path.startswith(reserved) and layout.reserves(path):
            raise UrlError(f"tasks may not write to the destination {path}")
    if both.differed:  # else a file has the name already
        _refuse_long_names(entries, len(base.path), len(layout.root))
    return entries, directories


def _refuse_long_names(entries: list[Entry], source: int, dest: int) -> None:
    """Raise ``UrlError`` for names too long, unless the task has such a file."""
    for entry in entries:
        if entry.source[source:] != entry.dest[dest:]:
            refuse_long_name(entry.dest)


def refuse_long_name(dest: str) -> None:
    """Raise ``UrlError`` for a path with a name that no file can have."""
    if any(len(name.encode()) > _MAX_NAME for name in dest.split("/")):
        raise UrlError(f"the destination {dest} has a name longer than {_MAX_NAME} bytes")
