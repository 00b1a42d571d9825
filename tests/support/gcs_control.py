"""Folders of an emulator by gRPC, as gcsfs asks for them: a front that hands on to its model.

It speaks google.storage.control.v2 as far as gcsfs does, and google.longrunning for renames.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from asynccommit.testing.emulators.gcs.emulator import GcsEmulatorThread
from asynccommit.testing.models.gcs.model import Folder, GcsRefusal, GcsService, Operation

# Status of the JSON API -> google.rpc.Code.
_CODES = {400: 3, 403: 7, 404: 5, 409: 6, 412: 9, 429: 8, 503: 14}

Method = Callable[[GcsService, Any], Any]


def grpc() -> Any:
    """Return ``grpc``, which has no types."""
    return importlib.import_module("grpc")


def _types() -> Any:
    return importlib.import_module("google.cloud.storage_control_v2.types")


def _parts(name: str) -> tuple[str, str]:
    """Return bucket and folder of a resource's name."""
    _, _, rest = name.partition("/buckets/")
    bucket, _, folder = rest.partition("/folders/")
    return bucket, folder.rstrip("/") + "/"


def _folder(found: Folder) -> Any:
    return _types().Folder(
        name=f"projects/_/buckets/{found.bucket}/folders/{found.name}",
        metageneration=found.metageneration,
        create_time=datetime.fromtimestamp(found.created, UTC),
        update_time=datetime.fromtimestamp(found.updated, UTC),
    )


def _layout(service: GcsService, asked: Any) -> Any:
    types = _types()
    name = asked.name.split("/")[3]
    options = service.storage_layout(name).options
    space = types.StorageLayout.HierarchicalNamespace(enabled=options.hns)
    return types.StorageLayout(
        name=asked.name, location=options.location, location_type="", hierarchical_namespace=space
    )


def _create(service: GcsService, asked: Any) -> Any:
    bucket = asked.parent.rpartition("/")[2]
    return _folder(service.insert_folder(bucket, asked.folder_id, recursive=asked.recursive))


def _get(service: GcsService, asked: Any) -> Any:
    return _folder(service.get_folder(*_parts(asked.name)))


def _list(service: GcsService, asked: Any) -> Any:
    bucket = asked.parent.rpartition("/")[2]
    found = service.list_folders(
        bucket, prefix=asked.prefix, page_token=asked.page_token, page_size=asked.page_size or None
    )
    folders = [_folder(one) for one in found.items]
    return _types().ListFoldersResponse(folders=folders, next_page_token=found.token)


def _delete(service: GcsService, asked: Any) -> Any:
    try:
        service.delete_folder(*_parts(asked.name))
    except GcsRefusal as refusal:
        # What is not empty is no conflict here.
        refusal.status = 412 if refusal.status == 409 else refusal.status
        raise
    return importlib.import_module("google.protobuf.empty_pb2").Empty()


def _rename(service: GcsService, asked: Any) -> Any:
    bucket, source = _parts(asked.name)
    dest = asked.destination_folder_id.rstrip("/") + "/"
    return _operation(service.rename_folder(bucket, source, dest))


def _look(service: GcsService, asked: Any) -> Any:
    bucket, _, operation = asked.name.partition("/buckets/")[2].partition("/operations/")
    return _operation(service.get_operation(bucket, operation))


def _operation(found: Operation) -> Any:
    pb = importlib.import_module("google.longrunning.operations_pb2")
    name = f"projects/_/buckets/{found.bucket}/operations/{found.id}"
    shown = pb.Operation(name=name, done=found.done)
    if found.refusal is not None:
        shown.error.code = _CODES.get(found.refusal.status, 13)
        shown.error.message = found.refusal.message
    elif found.folder is not None:
        shown.response.Pack(_types().Folder.pb(_folder(found.folder)))
    return shown


def _methods() -> dict[str, tuple[Method, Any]]:
    types = _types()
    pb = importlib.import_module("google.longrunning.operations_pb2")
    control = "google.storage.control.v2.StorageControl"
    return {
        f"/{control}/GetStorageLayout": (_layout, types.GetStorageLayoutRequest.deserialize),
        f"/{control}/CreateFolder": (_create, types.CreateFolderRequest.deserialize),
        f"/{control}/GetFolder": (_get, types.GetFolderRequest.deserialize),
        f"/{control}/ListFolders": (_list, types.ListFoldersRequest.deserialize),
        f"/{control}/DeleteFolder": (_delete, types.DeleteFolderRequest.deserialize),
        f"/{control}/RenameFolder": (_rename, types.RenameFolderRequest.deserialize),
        "/google.longrunning.Operations/GetOperation": (_look, pb.GetOperationRequest.FromString),
    }


def _bytes(answer: Any) -> bytes:
    kind = type(answer)
    return bytes(
        kind.serialize(answer) if hasattr(kind, "serialize") else answer.SerializeToString()
    )


class _Front:
    """Answers calls; a handler of ``grpc``."""

    def __init__(self, emulator: GcsEmulatorThread) -> None:
        self._emulator = emulator
        self._methods = _methods()
        self.asked: list[str] = []

    def service(self, details: Any) -> Any:
        """Return what answers a method, if there is one."""
        if details.method not in self._methods:
            return None
        method, read = self._methods[details.method]
        self.asked.append(details.method.rpartition("/")[2])

        def answer(asked: Any, context: Any) -> Any:
            try:
                return self._emulator.do(lambda running: method(running.service, asked))
            except GcsRefusal as refusal:
                code = _CODES.get(refusal.status, 13)
                found = next(one for one in grpc().StatusCode if one.value[0] == code)
                context.abort(found, refusal.message)

        return grpc().unary_unary_rpc_method_handler(answer, read, _bytes)


@contextmanager
def running_control(emulator: GcsEmulatorThread) -> Iterator[tuple[str, list[str]]]:
    """Yield an address where folders of an emulator are, and the methods that are asked for."""
    front = _Front(emulator)
    with ThreadPoolExecutor(4) as threads:
        server = grpc().server(threads, handlers=[front])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"127.0.0.1:{port}", front.asked
        finally:
            server.stop(None).wait(10)
