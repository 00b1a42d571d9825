"""Features of emulators, each tried with a client: a table of yes and no.

    python -m tests.witness.features azure                     our emulator
    python -m tests.witness.features azure CONNECTION_STRING   another
    python -m tests.witness.features google [http://HOST:PORT]

A feature is there if its steps end as the service documents; what a server answers otherwise is
shown.
"""

from __future__ import annotations

import base64
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from azure.core import MatchConditions
from azure.storage.blob import BlobBlock, BlobServiceClient, ContainerClient
from azure.storage.filedatalake import DataLakeServiceClient, FileSystemClient

from asynccommit.testing.emulators.adls.emulator import running_emulator
from asynccommit.testing.emulators.gcs.emulator import running_gcs_emulator

Probe = Callable[[Any], None]


def _refused(status: int, call: Callable[[], object]) -> None:
    """Check that a call is refused with a status."""
    try:
        call()
    except Exception as error:
        found = getattr(error, "status_code", None) or getattr(error, "code", None)
        assert found == status, f"{found} instead of {status}"
    else:
        raise AssertionError(f"done instead of {status}")


# --- Azure -------------------------------------------------------------------------------------


class Azure:
    """Both clients of a container of an account."""

    def __init__(self, connection: str) -> None:
        options: Mapping[str, Any] = {"retry_total": 0, "connection_timeout": 5}
        name = f"features-{datetime.now(UTC):%H%M%S%f}"
        blobs = BlobServiceClient.from_connection_string(connection, **options)
        self.blobs: ContainerClient = blobs.create_container(name)
        lake = DataLakeServiceClient.from_connection_string(connection, **options)
        self.files: FileSystemClient = lake.get_file_system_client(name)

    def file(self, name: str, data: bytes = b"hello") -> Any:
        """Write a file by the dfs endpoint."""
        file = self.files.create_file(name)
        file.append_data(data, 0)
        file.flush_data(len(data))
        return file


def _upload(azure: Azure) -> None:
    azure.blobs.upload_blob("up", b"hello")
    assert azure.blobs.download_blob("up").readall() == b"hello"


def _conditions(azure: Azure) -> None:
    azure.blobs.upload_blob("once", b"1")
    _refused(409, lambda: azure.blobs.upload_blob("once", b"2"))


def _blocks(azure: Azure) -> None:
    blob = azure.blobs.get_blob_client("blocks")
    name = base64.b64encode(b"1").decode()
    blob.stage_block(name, b"hello")
    blob.commit_block_list([BlobBlock(name)])
    assert blob.download_blob().readall() == b"hello"


def _append(azure: Azure) -> None:
    blob = azure.blobs.get_blob_client("append")
    blob.create_append_blob()
    blob.append_block(b"a")
    assert blob.append_block(b"b")["blob_append_offset"] == "1"


def _page_blob(azure: Azure) -> None:
    azure.blobs.get_blob_client("page").create_page_blob(512)


def _snapshot(azure: Azure) -> None:
    azure.blobs.upload_blob("snap", b"1").create_snapshot()


def _tags(azure: Azure) -> None:
    blob = azure.blobs.upload_blob("tags", b"1", tags={"k": "v"})
    assert blob.get_blob_tags() == {"k": "v"}


def _batch(azure: Azure) -> None:
    names = [f"batch{number}" for number in range(3)]
    for name in names:
        azure.blobs.upload_blob(name, b"1")
    assert [_.status_code for _ in azure.blobs.delete_blobs(*names)] == [202] * 3


def _copy(azure: Azure) -> None:
    source = azure.blobs.upload_blob("source", b"1")
    copied = azure.blobs.get_blob_client("copied")
    copied.start_copy_from_url(source.url)
    assert copied.download_blob().readall() == b"1"


def _blob_lease(azure: Azure) -> None:
    azure.blobs.upload_blob("leased", b"1").acquire_lease()
    _refused(412, lambda: azure.blobs.delete_blob("leased"))


def _lake(azure: Azure) -> None:
    assert azure.file("d/lake").download_file().readall() == b"hello"


def _rename_file(azure: Azure) -> None:
    name = azure.files.file_system_name
    azure.file("d/old").rename_file(f"{name}/d/new")
    assert azure.files.get_file_client("d/new").get_file_properties().size == 5


def _rename_directory(azure: Azure) -> None:
    azure.file("tree/a/f")
    found = azure.files.get_directory_client("tree")
    found.rename_directory(f"{azure.files.file_system_name}/moved")
    assert azure.files.get_file_client("moved/a/f").exists()


def _rename_condition(azure: Azure) -> None:
    azure.file("there")
    moved, name = azure.file("here"), f"{azure.files.file_system_name}/there"
    condition: Any = {"match_condition": MatchConditions.IfMissing}
    _refused(409, lambda: moved.rename_file(name, **condition))


def _acl(azure: Azure) -> None:
    file = azure.file("acl")
    file.set_access_control(acl="user::rwx,user:someone:r--,group::r--,other::---")
    assert "mask::r--" in file.get_access_control()["acl"]


def _delete_tree(azure: Azure) -> None:
    azure.file("gone/a/f")
    azure.files.delete_directory("gone")
    assert not azure.files.get_file_client("gone/a/f").exists()


def _path_lease(azure: Azure) -> None:
    file = azure.file("held")
    file.acquire_lease()
    _refused(412, file.delete_file)


def _both(azure: Azure) -> None:
    azure.file("both/f")
    assert azure.blobs.download_blob("both/f").readall() == b"hello"


def _expiry(azure: Azure) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    azure.file("expires").set_file_expiry("Absolute", expires_on=later)


AZURE: Mapping[str, Probe] = {
    "blobs: upload and download": _upload,
    "blobs: no overwrite": _conditions,
    "blobs: blocks": _blocks,
    "blobs: leases": _blob_lease,
    "blobs: copy": _copy,
    "blobs: append blobs": _append,
    "blobs: batch delete": _batch,
    "blobs: tags": _tags,
    "blobs: page blobs": _page_blob,
    "blobs: snapshots": _snapshot,
    "dfs: create, append, flush, read": _lake,
    "dfs: the same file on both endpoints": _both,
    "dfs: rename of a file": _rename_file,
    "dfs: rename of a directory": _rename_directory,
    "dfs: rename that replaces nothing": _rename_condition,
    "dfs: delete of a directory": _delete_tree,
    "dfs: ACLs with their mask": _acl,
    "dfs: leases": _path_lease,
    "dfs: expiry": _expiry,
}


# --- Google ------------------------------------------------------------------------------------


class Google:
    """The JSON API of an endpoint, and a bucket."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint.rstrip("/")
        self.bucket = f"features-{datetime.now(UTC):%H%M%S%f}"
        self.ask("POST", "/storage/v1/b?project=p", {"name": self.bucket})
        self.root = f"/storage/v1/b/{self.bucket}"

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Send a request; return the JSON of the response, or its bytes."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
        sent = {"Content-Type": kind, **{k.replace("_", "-"): v for k, v in headers.items()}}
        asked = urllib.request.Request(
            self.endpoint + path, None if body is None else data, sent, method=method
        )
        with urllib.request.urlopen(asked, timeout=10) as answer:
            found = answer.read()
            self.headers = answer.headers
        try:
            return json.loads(found)
        except ValueError:
            return found

    def put(self, name: str, data: bytes = b"hello", query: str = "") -> Any:
        """Make an object."""
        path = f"/upload{self.root}/o?uploadType=media&name={quote(name, safe='')}{query}"
        return self.ask("POST", path, data)

    def get(self, name: str) -> Any:
        """Return the content of an object."""
        return self.ask("GET", f"{self.root}/o/{quote(name, safe='')}?alt=media")


def _insert(google: Google) -> None:
    google.put("a")
    assert google.get("a") == b"hello"


def _if_absent(google: Google) -> None:
    google.put("once", query="&ifGenerationMatch=0")
    _refused(412, lambda: google.put("once", query="&ifGenerationMatch=0"))


def _if_generation(google: Google) -> None:
    google.put("changed")
    _refused(412, lambda: google.ask("DELETE", f"{google.root}/o/changed?ifGenerationMatch=7"))


def _move(google: Google) -> None:
    google.put("m")
    google.ask("POST", f"{google.root}/o/m/moveTo/o/n", {})
    assert google.get("n") == b"hello"
    _refused(404, lambda: google.get("m"))


def _move_condition(google: Google) -> None:
    google.put("m2")
    google.ask("POST", f"{google.root}/o/m2/moveTo/o/n2?ifGenerationMatch=0", {})
    assert google.get("n2") == b"hello"
    _refused(404, lambda: google.get("m2"))


def _compose(google: Google) -> None:
    google.put("c1")
    google.put("c2")
    sources = {"sourceObjects": [{"name": "c1"}, {"name": "c2"}]}
    google.ask("POST", f"{google.root}/o/c3/compose", sources)
    assert google.get("c3") == b"hellohello"


def _rewrite(google: Google) -> None:
    other = f"{google.bucket}-eu"
    google.ask("POST", "/storage/v1/b?project=p", {"name": other, "location": "EU"})
    google.put("big", b"." * (3 << 20))
    path = f"{google.root}/o/big/rewriteTo/b/{other}/o/copy?maxBytesRewrittenPerCall=1048576"
    assert not google.ask("POST", path, {})["done"], "all of it was copied at once"


def _resumable(google: Google) -> None:
    path = f"/upload{google.root}/o?uploadType=resumable&name=r"
    google.ask("POST", path, {}, X_Upload_Content_Length="5")
    where = google.headers["Location"].removeprefix(google.endpoint)
    google.ask("PUT", where, b"hello", Content_Range="bytes 0-4/5")
    assert google.get("r") == b"hello"


def _listing(google: Google) -> None:
    for name in ("l/a/1", "l/a/2", "l/b"):
        google.put(name)
    page = google.ask("GET", f"{google.root}/o?prefix=l/&delimiter=/&maxResults=1")
    assert page["prefixes"] == ["l/a/"], page
    assert page["nextPageToken"]


def _crc32c(google: Google) -> None:
    assert google.put("crc")["crc32c"] == "mnG7TA=="


def _layout(google: Google) -> None:
    assert google.ask("GET", f"{google.root}/storageLayout")["bucket"] == google.bucket


def _folders(google: Google) -> None:
    name = f"{google.bucket}-hns"
    layout = {"hierarchicalNamespace": {"enabled": True}}
    uniform = {"uniformBucketLevelAccess": {"enabled": True}}
    bucket = {"name": name, **layout, "iamConfiguration": uniform}
    google.ask("POST", "/storage/v1/b?project=p", bucket)
    root = f"/storage/v1/b/{name}/folders"
    google.ask("POST", root, {"name": "a/"})
    google.ask("POST", f"{root}/a%2F/renameTo/folders/b%2F", {})
    assert google.ask("GET", f"{root}/b%2F")["name"] == "b/"


def _versions(google: Google) -> None:
    google.ask("PATCH", google.root, {"versioning": {"enabled": True}})
    old = google.put("v")["generation"]
    google.put("v", b"new")
    path = f"{google.root}/o/v?alt=media&generation={old}"
    assert google.ask("GET", path) == b"hello"


def _batch_delete(google: Google) -> None:
    google.put("x")
    body = (
        f"--b\r\nContent-Type: application/http\r\n\r\nDELETE {google.root}/o/x HTTP/1.1\r\n\r\n"
        "--b--\r\n"
    ).encode()
    google.ask("POST", "/batch/storage/v1", body, Content_Type="multipart/mixed; boundary=b")
    _refused(404, lambda: google.get("x"))


def _decompression(google: Google) -> None:
    import gzip

    google.put("zip", gzip.compress(b"hello"), "&contentEncoding=gzip")
    assert google.get("zip") == b"hello"


def _scripts(google: Google) -> None:
    script = {"instructions": {"storage.objects.get": ["return-503"]}}
    name = google.ask("POST", "/retry_test", script)["id"]
    google.put("s")
    path = f"{google.root}/o/s"
    _refused(503, lambda: google.ask("GET", path, x_retry_test_id=name))


def _xml(google: Google) -> None:
    google.put("xml")
    assert google.ask("GET", f"/{google.bucket}/xml") == b"hello"


def _hmac(google: Google) -> None:
    google.ask("POST", "/storage/v1/projects/p/hmacKeys?serviceAccountEmail=a@b", {})


def _acls(google: Google) -> None:
    google.put("acl")
    google.ask("GET", f"{google.root}/o/acl/acl")


def _notifications(google: Google) -> None:
    google.ask("GET", f"{google.root}/notificationConfigs")


GOOGLE: Mapping[str, Probe] = {
    "upload and download": _insert,
    "no overwrite (ifGenerationMatch=0)": _if_absent,
    "conditions on a generation": _if_generation,
    "CRC32C": _crc32c,
    "listing with prefixes and pages": _listing,
    "resumable upload": _resumable,
    "compose": _compose,
    "rewrite in several calls": _rewrite,
    "moveTo": _move,
    "moveTo that replaces nothing": _move_condition,
    "storage layout": _layout,
    "folders and their rename": _folders,
    "versions": _versions,
    "batch": _batch_delete,
    "decompression": _decompression,
    "scripts of faults (retry_test)": _scripts,
    "XML API": _xml,
    "ACLs": _acls,
    "HMAC keys": _hmac,
    "notifications": _notifications,
}


# --- the table ---------------------------------------------------------------------------------


def table(probes: Mapping[str, Probe], target: Any) -> Iterator[tuple[str, bool, str]]:
    """Yield each feature, whether it is there, and what was answered otherwise."""
    for name, probe in probes.items():
        try:
            probe(target)
        except Exception as error:
            yield name, False, f"{type(error).__name__}: {error}".splitlines()[0][:90]
        else:
            yield name, True, ""


@contextmanager
def _open(service: str, address: str | None) -> Iterator[tuple[Mapping[str, Probe], Any]]:
    if service == "azure" and address is None:
        with running_emulator() as emulator:
            yield AZURE, Azure(emulator.connection_string)
    elif service == "azure":
        yield AZURE, Azure(str(address))
    elif address is None:
        with running_gcs_emulator() as server:
            yield GOOGLE, Google(server.endpoint)
    else:
        yield GOOGLE, Google(address)


def main(arguments: Sequence[str]) -> int:
    """Print the table; return the exit code."""
    if not arguments or arguments[0] not in ("azure", "google"):
        sys.exit(__doc__)
    with _open(arguments[0], arguments[1] if len(arguments) > 1 else None) as (probes, target):
        for name, there, said in table(probes, target):
            sys.stdout.write(f"{'yes' if there else 'no':4}{name:42}{said}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
