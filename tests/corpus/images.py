"""Images of stores: JSON from which a later version of the models restores the same state.

An image names no class of the models. Under the path of each file and directory it has what
requests can find out about it, without uncommitted bytes and counts of requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from asynccommit.testing.models.adls.account import Node
from asynccommit.testing.models.gcs.bucket import Folder
from asynccommit.testing.models.gcs.objects import Content, GcsObject
from asynccommit.testing.models.hdfs.namenode import HdfsNode
from asynccommit.testing.models.invariants import Item
from asynccommit.testing.models.s3.objects import CompletedPart, S3Object, SentPart
from asynccommit.testing.models.s3.uploads import EndedUpload, S3Upload
from tests.corpus.resigned import unpack
from tests.crash.worlds import GCS, HDFS, new_world
from tests.support.crashes import FILESYSTEM, LocalWorld, SimWorld
from tests.support.gcs_crashes import BUCKET, GcsWorld
from tests.support.hdfs_crashes import HdfsWorld
from tests.support.upload_jobs import World as UploadWorld

Row = list[Any]
"""The content as text, ``None`` for a directory, and what the store says besides."""


class Image(NamedTuple):
    """A store at one moment.

    Attributes:
        rows: path -> what is there; a directory's path may be that of a file's parent.
        facts: what belongs to no path: counters, and open and ended uploads.
        time: seconds after the beginning of the run.
    """

    rows: Mapping[str, Row]
    facts: list[Any]
    time: float


def text_of(data: bytes) -> str:
    """Return bytes as a text that JSON can hold."""
    return data.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """Return the bytes of ``text_of``."""
    return text.encode("utf-8", "surrogateescape")


# --- ADLS ---------------------------------------------------------------------------------------


def _of_account(world: SimWorld) -> tuple[dict[str, Row], list[Any]]:
    rows: dict[str, Row] = {}

    def walk(node: Node, path: str) -> None:
        for name, child in (node.children or {}).items():
            assert child.extra is None, "this model has more than images know"
            text = None if child.is_dir else text_of(child.read())
            rows[f"{path}/{name}"] = [
                text, child.version, child.created, child.modified, child.token
            ]  # fmt: skip
            walk(child, f"{path}/{name}")

    walk(world.account.head_filesystem(FILESYSTEM).root, "")
    return rows, [world.account._version]


def _to_account(image: Image) -> SimWorld:
    world = SimWorld.new()
    root = world.account.head_filesystem(FILESYSTEM).root
    for path, (text, version, created, modified, token) in sorted(image.rows.items()):
        node = Node({} if text is None else None, version, created, token)
        node.modified = modified
        if text:
            node.chunks, node.size = (bytes_of(text),), len(bytes_of(text))
        above = root
        *parents, name = path[1:].split("/")
        for parent in parents:
            assert above.children is not None
            above = above.children[parent]
        assert above.children is not None
        above.children[name] = node
    (world.account._version,) = image.facts
    return world


# --- HDFS ---------------------------------------------------------------------------------------


def _of_namenode(world: HdfsWorld) -> tuple[dict[str, Row], list[Any]]:
    rows: dict[str, Row] = {}

    def walk(node: HdfsNode, path: str) -> None:
        for name, child in (node.children or {}).items():
            text = text_of(child.data) if child.children is None else None
            rows[f"{path}/{name}"] = [text, child.number, child.time, child.owner]
            walk(child, f"{path}/{name}")

    walk(world.namenode.root, "")
    return rows, [world.namenode._number, world.namenode._last]


def _to_namenode(kind: str, image: Image) -> HdfsWorld:
    world = new_world(kind)
    assert isinstance(world, HdfsWorld)
    for path, (text, number, time, owner) in sorted(image.rows.items()):
        children: dict[str, HdfsNode] | None = {} if text is None else None
        node = HdfsNode(number, time, bytes_of(text or ""), children, owner=owner)
        world.namenode.place(path, node)
    world.namenode._number, world.namenode._last = image.facts
    return world


# --- Google Cloud Storage -----------------------------------------------------------------------


def _of_service(world: GcsWorld) -> tuple[dict[str, Row], list[Any]]:
    held = world.service.held(BUCKET)
    assert not held.pending, "an operation is under way"
    rows: dict[str, Row] = {
        f"{name}|folder": [None, folder.created, folder.updated, folder.metageneration]
        for name, folder in held.folders.items()
    }
    for name, found in held.objects.items():
        kind = found.details.content_type
        plain = held.plain._replace(metadata=found.details.metadata, content_type=kind)
        assert plain == found.details, "an object has more than images know"
        rows[name] = [
            text_of(found.content.data), found.generation, found.metageneration,
            found.created, found.updated, dict(found.details.metadata), kind,
        ]  # fmt: skip
    return rows, [world.service._generation]


def _to_service(kind: str, image: Image) -> GcsWorld:
    world = GcsWorld.new(kind)
    held = world.service.held(BUCKET)
    for path, row in sorted(image.rows.items()):
        name, _, folder = path.partition("|")
        if folder:
            held.folders[name] = Folder(BUCKET, name, *row[1:])
            continue
        text, generation, metageneration, created, updated, metadata, kind = row
        marks = MappingProxyType(metadata)
        details = held.plain._replace(metadata=marks, content_type=kind)
        made = GcsObject(BUCKET, name, generation, Content(bytes_of(text)), details, created)
        made.metageneration, made.updated = metageneration, updated
        held.objects[name] = made
    (world.service._generation,) = image.facts
    return world


# --- S3 -----------------------------------------------------------------------------------------


def _object(found: S3Object) -> Row:
    _, data, etag, modified, metadata, algorithm, checksum, encrypted = found
    assert not encrypted
    return [text_of(data), etag, modified, dict(metadata), algorithm, checksum]


def _to_object(key: str, row: Row) -> S3Object:
    return S3Object(key, bytes_of(row[0]), *row[1:])


def _of_bucket(world: UploadWorld) -> tuple[dict[str, Row], list[Any]]:
    table = world.bucket.uploads
    opened = [
        [one.key, one.upload_id, one.initiated, one.serial, dict(one.metadata), one.algorithm,
         [[number, text_of(data), *rest] for number, data, *rest in one.parts.values()],
         one.aborted]
        for one in table.open.values()
    ]  # fmt: skip
    ended = [
        [upload_id, one.key, one.serial, one.algorithm, one.at,
         None if one.made is None else _object(one.made), [list(part) for part in one.parts]]
        for upload_id, one in table.ended.items()
    ]  # fmt: skip
    rows = {key: _object(found) for key, found in world.bucket.objects.items()}
    return rows, [table._serial, opened, ended]


def _to_bucket(image: Image) -> UploadWorld:
    world = UploadWorld.new()
    for key, row in sorted(image.rows.items()):
        world.bucket.objects[key] = _to_object(key, row)
    table = world.bucket.uploads
    table._serial, opened, ended = image.facts
    for key, upload_id, initiated, serial, metadata, algorithm, parts, aborted in opened:
        sent = {number: SentPart(number, bytes_of(text), *rest) for number, text, *rest in parts}
        table.open[upload_id] = S3Upload(
            key, upload_id, initiated, serial, metadata, algorithm, sent, aborted
        )
    for upload_id, key, serial, algorithm, at, made, parts in ended:
        found = None if made is None else _to_object(key, made)
        names = tuple(CompletedPart(*part) for part in parts)
        table.ended[upload_id] = EndedUpload(key, serial, algorithm, at, found, names)
    return world


# --- all of them --------------------------------------------------------------------------------


def _of_disk(world: LocalWorld) -> tuple[dict[str, Row], list[Any]]:
    rows: dict[str, Row] = {}
    for path in sorted(world.root.rglob("*")):
        stat, name = path.stat(), str(path)[len(str(world.root)) :]
        text = None if path.is_dir() else text_of(path.read_bytes())
        rows[name] = [text] if text is None else [text, stat.st_ino, stat.st_mtime_ns]
    return rows, [str(world.root)]


_TAKE: Mapping[type, Callable[[Any], tuple[dict[str, Row], list[Any]]]] = {
    SimWorld: _of_account,
    HdfsWorld: _of_namenode,
    GcsWorld: _of_service,
    UploadWorld: _of_bucket,
    LocalWorld: _of_disk,
}


def take(world: Any) -> Image:
    """Return an image of a world."""
    kind = next(kind for kind in _TAKE if isinstance(world, kind))
    rows, facts = _TAKE[kind](world)
    return Image(rows, facts, 0.0 if kind is LocalWorld else asyncio.get_running_loop().time())


async def bring(kind: str, image: Image, root: Path | None = None) -> tuple[Any, Any]:
    """Return a world with what an image has, at its time, and a function for texts about it.

    Only a disk needs the function: files have other numbers there, and state files name them.

    Args:
        kind: of the world.
        image: what it has.
        root: the directory of a world on a disk.
    """
    if root is not None:
        return LocalWorld(root), unpack(root, image.rows, *image.facts)
    await asyncio.sleep(max(0.0, image.time - asyncio.get_running_loop().time()))
    if kind == "s3":
        return _to_bucket(image), _as_it_is
    if kind in GCS:
        return _to_service(kind, image), _as_it_is
    return (_to_namenode(kind, image) if kind in HDFS else _to_account(image)), _as_it_is


def _as_it_is(text: str) -> str:
    return text


def items(world: Any) -> dict[str, Item]:
    """Return the files and directories of a world, and of a bucket of S3 its open uploads."""
    if not isinstance(world, UploadWorld):
        return dict(world.tree())
    found = {f"/{one.key}": Item(one.data, one.etag) for one in world.bucket.objects.values()}
    for upload in world.bucket.uploads.open.values():
        found[f"/{upload.key}|{upload.upload_id}"] = Item(b"an upload")
    return found
