"""Check the invariants of a job over file trees, whatever faults occurred.

A tree is the content of one store at one moment, hidden files included; ``tree_of`` takes it from
the model. Each check returns its violations as text, and an empty list if there are none.

Requests whose response was lost can take effect at the very end. Their possible leftovers, hidden
temporary files and empty directories, are called *rubbish*; no reader sees them. Where a file needs
no parent directory, the leftovers may also include *words*: records written by owners of a commit
that is over.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256
from typing import NamedTuple

from asynccommit.commit.layouts.layout import EPOCH, PLAN, RECORD, SUCCESS
from asynccommit.commit.paths import SAMPLE
from asynccommit.errors import ManifestError
from asynccommit.formats.commit_record import decode_record
from asynccommit.formats.success import SuccessData, decode_success
from asynccommit.stores import filesystem_names
from asynccommit.testing.models.adls.account import AdlsAccount
from asynccommit.testing.models.gcs.model import GcsBucket, GcsObject, GcsService


class Item(NamedTuple):
    """The content at one path.

    Attributes:
        data: content of a file; ``None`` for a directory.
        etag: etag of a file in its store; ``None`` where it does not matter.
        version: version of the file among those of its name; ``None`` if unknown. Without it
            a rewrite with the same data and etag is not detected.
    """

    data: bytes | None = None
    etag: str | None = None
    version: str | None = None


Tree = Mapping[str, Item]
"""Absolute path -> item."""


def tree_of(account: AdlsAccount, filesystem: str) -> dict[str, Item]:
    """Return the whole content of a filesystem of the model."""
    found: dict[str, Item] = {}
    token: str | None = None
    while True:
        listing = account.list(filesystem, recursive=True, token=token)
        for name, node in listing.entries:
            found[f"/{name}"] = Item() if node.is_dir else Item(node.read(), node.etag)
        token = listing.token
        if token is None:
            return found


# --- the checks -------------------------------------------------------------------------------


def complete(tree: Tree, files: Tree) -> list[str]:
    """Check that committed files are at their destination, with data and etag."""
    return [
        problem for path, item in files.items() if (problem := _differs(path, item, tree.get(path)))
    ]


def exclusive(tree: Tree, dest: str, expected: Iterable[str]) -> list[str]:
    """Check that a reader of ``dest`` sees only the expected files."""
    files = {*expected}
    return [
        f"{path} is visible but was not committed"
        for path in visible(tree, dest)
        if path not in files
    ]


def concurrent(tree: Tree, serial: Tree, dest: str) -> list[str]:
    """Check that concurrent task commits give the result of serial ones."""
    return _compare(_content(visible(serial, dest)), _content(visible(tree, dest)))


def abortable(before: Tree, after: Tree, *, words: bool = False) -> list[str]:
    """Check that an aborted job left the tree as before, except for rubbish."""
    return _compare(before, _swept(after, before, words=words))


def continuity(earlier: Tree, later: Tree, dest: str, failed: Collection[bytes] = ()) -> list[str]:
    """Check that a finished job's files stay and no failed attempt's appear.

    Args:
        earlier: tree at the end of the job.
        later: tree after all stragglers and late requests.
        dest: destination that readers see.
        failed: contents of files of failed attempts.
    """
    problems = _compare(visible(earlier, dest), visible(later, dest))
    seen = {item.data: path for path, item in visible(later, dest).items()}
    problems += [f"{seen[data]} belongs to a failed attempt" for data in failed if data in seen]
    return problems


def marked(tree: Tree, dest: str, jobs: Mapping[str, Tree]) -> list[str]:
    """Check that ``_SUCCESS`` implies the job's files, with size and etag."""
    marker = success_of(tree, dest)
    if marker is None or marker.job_id not in jobs:
        return []
    if not marker.success:
        return [f"_SUCCESS says that job {marker.job_id} failed"]
    missing = complete(tree, jobs[marker.job_id])
    return [f"_SUCCESS of job {marker.job_id} is there, but {text}" for text in missing]


def untouched(before: Tree, tree: Tree, replaced: Collection[str] = ()) -> list[str]:
    """Check that foreign files are unchanged, except those the job replaced.

    Args:
        before: tree before the job.
        tree: present tree.
        replaced: paths that the job had to replace, with everything below them.
    """
    kept = {path: item for path, item in before.items() if not within(path, replaced)}
    return complete(tree, kept)


def no_leftovers(tree: Tree, job_dir: str, *, late: bool = False, words: bool = False) -> list[str]:
    """Check that the directory of a finished job is empty.

    Args:
        tree: present tree.
        job_dir: directory of the job.
        late: allow rubbish.
        words: allow words too.
    """
    left = _swept(tree, (), words=words) if late else tree
    return [f"{path} remains" for path in left if within(path, (job_dir,))]


def same(
    undisturbed: Tree,
    tree: Tree,
    apart: Collection[str] = (),
    *,
    late: bool = False,
    words: bool = False,
) -> list[str]:
    """Check that resume ends like an undisturbed run: same paths and contents.

    The kinds must be the same too. Of ``_SUCCESS`` files only the job, the outcome and the names
    are compared.

    Args:
        undisturbed: tree of an undisturbed run.
        tree: present tree.
        apart: directories to ignore.
        late: allow rubbish.
        words: allow words too.
    """
    there = _swept(tree, undisturbed, words=words) if late else tree
    return _compare(_content(_without(undisturbed, apart)), _content(_without(there, apart)))


def restored(
    before: Tree,
    tree: Tree,
    apart: Collection[str] = (),
    *,
    late: bool = False,
    words: bool = False,
) -> list[str]:
    """Check that rollback restores the tree: paths, kinds, contents and etags.

    Args: see ``same``.
    """
    there = _swept(tree, before, words=words) if late else tree
    return _compare(_without(before, apart), _without(there, apart))


def refused(before: Tree, tree: Tree, dest: str, apart: Collection[str] = ()) -> list[str]:
    """Check that a rejected commit changed nothing.

    Paths, kinds, contents and etags must be the same.

    Args:
        before: tree before the commit was requested.
        tree: tree after it was rejected.
        dest: destination, whose ``_temporary`` holds the work of jobs and is ignored.
        apart: further directories to ignore, such as that of reports.
    """
    out = (f"{dest}/_temporary", *apart)
    return _compare(_without(before, out), _without(tree, out))


def rolled_back(
    before: Tree,
    tree: Tree,
    left: Collection[str] = (),
    foreign: Collection[str] = (),
    apart: Collection[str] = (),
    *,
    late: bool = False,
    words: bool = False,
) -> list[str]:
    """Check that a rollback restored the tree, except as its report says.

    Args:
        before: tree before the job.
        tree: tree after the rollback.
        left: paths that its report names as not restored, with everything below them.
        foreign: paths that others have written or deleted meanwhile.
        apart: directories to ignore.
        late: allow rubbish.
        words: allow words too.
    """
    excused = [*left, *foreign]
    above = {parent for path in excused for parent in _parents(path)} - before.keys()
    there = {path: item for path, item in tree.items() if path not in above}
    return restored(before, there, [*excused, *apart], late=late, words=words)


def named_in_vain(before: Tree, tree: Tree, left: Collection[str]) -> list[str]:
    """Check that each path a rollback reports as not restored really differs."""
    return [
        f"{path} is unchanged, but was reported as changed"
        for path in left
        if not restored(_below(before, path), _below(tree, path))
    ]


# --- helpers ----------------------------------------------------------------------------------


def success_of(tree: Tree, dest: str) -> SuccessData | None:
    """Return the marker of ``dest``, or ``None`` if it is missing or another committer's."""
    item = tree.get(f"{dest}/{SUCCESS}")
    if item is None or not item.data:
        return None
    try:
        return decode_success(item.data, SUCCESS)
    except ManifestError:
        return None


def visible(tree: Tree, dest: str) -> dict[str, Item]:
    """Return the files below ``dest`` that readers see."""
    start = len(dest) + 1
    return {
        path: item
        for path, item in tree.items()
        if item.data is not None
        and path.startswith(f"{dest}/")
        and not any(name[:1] in ("_", ".") for name in path[start:].split("/"))
    }


def within(path: str, directories: Collection[str]) -> bool:
    """Return whether ``path`` is one of ``directories`` or below one."""
    return any(path == other or path.startswith(f"{other}/") for other in directories)


def is_temporary(path: str) -> bool:
    """Return whether a path is a store's temporary file, absent from listings."""
    return filesystem_names.is_temporary(path.rpartition("/")[2])


_WORD = re.compile(rf"(.*/_temporary/[^/]+/\d\d+)/commit-[^/]+(/{SUCCESS}[^/]*\.tmp)?").fullmatch


def words_of(tree: Tree) -> set[str]:
    """Return the record files of commits that have not begun or are over.

    They are the files that owners write: record, plan, claims, heartbeats, outcome, end, and
    markers that were not moved to their place. They mean nothing without a record and its plan, and
    those that name the commit nothing without its record.
    """
    found: dict[str, list[str]] = {}
    for path, item in tree.items():
        if item.data is not None and (match := _WORD(path)):
            found.setdefault(match[1], []).append(path)
    return {path for place, paths in found.items() if not _stands(tree, place) for path in paths}


def _stands(tree: Tree, place: str) -> bool:
    """Return whether a job attempt has a valid record.

    It is valid with exactly its plan, or with an end.
    """
    item = tree.get(f"{place}/{RECORD}")
    if item is None or not (item.data or b"").strip(b"\0"):
        return False
    try:
        record = decode_record(item.data or b"", RECORD)
    except ManifestError:
        return True
    end = f"{place}/{EPOCH}{sha256(item.data or b'').hexdigest()[:12]}-"
    if any(path.startswith(end) and path.endswith(".done") for path in tree):
        return True
    plan = tree.get(f"{place}/{PLAN}{record.plan_id}-00000.json")
    return plan is not None and record.options.get("planVersion", plan.version) == plan.version


def _swept(tree: Tree, keep: Collection[str], *, words: bool = False) -> dict[str, Item]:
    """Return ``tree`` without rubbish and words, except for paths in ``keep``."""
    late = words_of(tree) if words else set()
    files = [
        path
        for path, item in tree.items()
        if path in keep or (item.data is not None and not is_temporary(path) and path not in late)
    ]
    held = {parent for path in files for parent in _parents(path)}
    return {path: tree[path] for path in [*files, *(held & tree.keys())]}


def _parents(path: str) -> Iterable[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _without(tree: Tree, apart: Collection[str]) -> Tree:
    return {path: item for path, item in tree.items() if not within(path, apart)}


def _below(tree: Tree, path: str) -> Tree:
    return {other: item for other, item in tree.items() if within(other, (path,))}


def _content(tree: Tree) -> dict[str, Item]:
    """Return ``tree`` without etags and with comparable markers."""
    return {
        path: Item(_essence(path, item.data) if path.endswith(f"/{SUCCESS}") else item.data)
        for path, item in tree.items()
    }


def _essence(path: str, data: bytes | None) -> bytes | None:
    try:
        marker = decode_success(data or b"", path)
    except ManifestError:
        return data
    names = sorted(marker.filenames)
    # Which ones a larger job names depends on the order in which its manifests were read.
    named = names if len(names) < SAMPLE else len(names)
    return repr((marker.job_id, marker.success, named)).encode()


def _compare(expected: Tree, found: Tree) -> list[str]:
    problems = complete(found, expected)
    return problems + [
        f"{path}, a {_kind(found[path])}, exists but should not"
        for path in sorted(found.keys() - expected.keys())
    ]


def _differs(path: str, expected: Item, found: Item | None) -> str:
    """Describe how the item at ``path`` differs; ``""`` if it does not."""
    if found is None:
        return f"{path}, a {_kind(expected)}, is missing"
    if _kind(found) != _kind(expected):
        return f"{path} is a {_kind(found)}, not a {_kind(expected)}"
    if found.data != expected.data:
        return f"{path} holds {_short(found.data)}, not {_short(expected.data)}"
    if expected.etag is not None and found.etag != expected.etag:
        return f"{path} has the etag {found.etag}, not {expected.etag}"
    return ""


def _kind(item: Item) -> str:
    return "directory" if item.data is None else "file"


def _short(data: bytes | None) -> str:
    return repr((data or b"")[:80])


_BUCKET_DIRECTORY = Item()


def bucket_tree(service: GcsService, bucket: str) -> dict[str, Item]:
    """Return the content of a bucket as a tree.

    Live objects become files; placeholders and folders become directories. An item's etag is the
    object's CRC32C in hexadecimal, which survives a move. An object whose name ends in a slash is a
    directory, as are folders; a file of the same name hides it.
    """
    held = service.held(bucket)
    found = {f"/{name[:-1]}": _BUCKET_DIRECTORY for name in held.folder_names.below("")}
    files: dict[str, Item] = {}
    for name in held.names.below(""):
        if name[-1] == "/":
            found[f"/{name[:-1]}"] = _BUCKET_DIRECTORY
        else:
            files[f"/{name}"] = _bucket_file(held.objects[name])
    return dict(sorted({**found, **files}.items()))


def bucket_item(service: GcsService, bucket: str, path: str) -> Item | None:
    """Return the item at one path, ``None`` if there is none."""
    held: GcsBucket = service.held(bucket)
    name = path[1:]
    there = held.objects.get(name)
    if there is not None:
        return _bucket_file(there)
    placed = f"{name}/" in held.objects or f"{name}/" in held.folders
    return _BUCKET_DIRECTORY if placed else None


def _bucket_file(found: GcsObject) -> Item:
    return Item(found.content.data, f"{found.crc32c:08x}")
