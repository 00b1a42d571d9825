"""The emulator against the service's own description of its JSON API: URLs, parameters, answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from asynccommit.testing.emulators.gcs.app import GcsApp
from asynccommit.testing.emulators.gcs.wire import GcsResponse
from asynccommit.testing.models.gcs.bucket import WEEK, BucketOptions
from asynccommit.testing.models.gcs.model import Details, GcsService, ListQuery, Retention
from tests.support.gcs_store import Clock

DOCUMENT = json.loads(
    (Path(__file__).parent.parent / "fixtures" / "gcs_discovery.json").read_text("utf-8")
)
METHODS: dict[str, dict[str, Any]] = DOCUMENT["methods"]
HEADERS = {"host": "storage.googleapis.com"}
INSERT = "storage.objects.insert"
# What the service has and the emulator has not.
MISSING = {"storage.folders.deleteRecursive"}
# What the fixture has not, by the names of Google's storage-testbench in fault scripts.
BESIDES = {
    *(f"storage.hmacKey.{verb}" for verb in ("create", "delete", "get", "list", "update")),
    *(f"storage.notifications.{verb}" for verb in ("delete", "get", "insert", "list")),
    *(
        f"storage.{kind}AccessControls.{verb}"
        for kind in ("bucket", "defaultObject", "object")
        for verb in ("insert", "list")
    ),
    "storage.buckets.lockRetentionPolicy",
    "storage.serviceaccount.get",
}
NAMES = {
    **{"bucket": "data", "sourceBucket": "data", "destinationBucket": "data"},
    **{"object": "d/file", "sourceObject": "d/file", "destinationObject": "other"},
    **{"folder": "f/", "sourceFolder": "f/", "destinationFolder": "g/"},
}
BODIES: dict[str, Any] = {
    "storage.buckets.insert": {"name": "new"},
    "storage.folders.insert": {"name": "h/"},
    "storage.objects.compose": {"sourceObjects": [{"name": "d/file"}, {"name": "other"}]},
    "storage.buckets.setIamPolicy": {"bindings": []},
}
NEEDED = {
    "storage.buckets.list": {"project": "project"},
    "storage.buckets.insert": {"project": "project"},
    "storage.buckets.testIamPermissions": {"permissions": "storage.objects.get"},
}


def new_app() -> GcsApp:
    """Return an emulator with a bucket of each kind that hold something of everything."""
    numbers = iter(range(1, 1 << 30))
    service = GcsService(now=Clock(), new_id=lambda: f"{next(numbers):032x}")
    service.create_bucket("data", BucketOptions(soft_delete=WEEK))
    service.create_bucket("folders", BucketOptions(hns=True))
    service.create_bucket(
        "rich",
        BucketOptions(
            versioning=True,
            requester_pays=True,
            retention=60.0,
            default_event_based_hold=True,
            default_kms_key_name="projects/p/locations/us/keyRings/r/cryptoKeys/k",
        ),
    )
    service.create_bucket("empty")
    for data in (b"before", b"12345"):
        service.insert("data", "d/file", data, details=Details(metadata={"k": "v"}))
    service.insert("data", "other", b"1")
    service.insert_folder("folders", "f/", recursive=True)
    return GcsApp(service)


def segment(method: str, name: str, app: GcsApp) -> str:
    """Return a name for a place in a URL."""
    if name == "operationId":
        return app.service.rename_folder("folders", "f/", "x/").id
    if name == "bucket" and re.search(r"folders\.|operations\.", method):
        return "folders"
    return "empty" if method == "storage.buckets.delete" else NAMES[name]


def ask(app: GcsApp, method: str, query: dict[str, Any] | None = None) -> GcsResponse:
    """Ask for a method of the document, with names and a body that make sense."""
    wanted = METHODS[method]
    path = re.sub(
        r"\{(\w+)\}", lambda found: quote(segment(method, found[1], app), safe=""), wanted["path"]
    )
    given = {**NEEDED.get(method, {}), **(query or {})}
    if method == "storage.objects.restore":
        given["generation"] = deleted(app)
    if method == INSERT:
        target = "/upload/storage/v1/b/data/o"
        given = {"uploadType": "media", "name": "d/file", **given}
    else:
        target = f"/storage/v1/{path}"
    body = json.dumps(BODIES[method]).encode() if method in BODIES else b""
    return app.answer(wanted["verb"], f"{target}?{urlencode(given)}", HEADERS, body)


def deleted(app: GcsApp) -> int:
    """Return the generation of what was replaced."""
    (found,) = app.service.list("data", ListQuery(soft_deleted=True)).items
    return found.generation


CLAIMED = sorted(METHODS.keys() - MISSING)


def test_methods() -> None:
    """Every operation is one of the fixture, but for those left out or added here."""
    assert new_app().routes.methods == (METHODS.keys() - MISSING) | BESIDES


@pytest.mark.parametrize("method", CLAIMED)
def test_urls(method: str) -> None:
    """The verb and the path of a method lead to that method."""
    app = new_app()
    wanted = METHODS[method]
    path = "/storage/v1/" + re.sub(r"\{\w+\}", "x%2Fy", wanted["path"])
    if method == INSERT:
        path = "/upload/storage/v1/b/x/o?uploadType=media&name=y"

    assert app.read(wanted["verb"], path, HEADERS).route.method == method
    if method == "storage.objects.get":
        assert app.read("GET", f"{path}?alt=media", HEADERS).route.method == method
        assert app.read("GET", f"/download{path}?alt=media", HEADERS).route.method == method


@pytest.mark.parametrize("kind", ["simple", "resumable"])
def test_upload_urls(kind: str) -> None:
    """Both prefixes of uploads lead to uploads, of both kinds; and the batch's to the batch."""
    path = DOCUMENT["uploads"][kind].replace("{bucket}", "data")
    app = new_app()
    whole = app.read("POST", f"{path}?uploadType=media&name=y", HEADERS)
    session = app.read("POST", f"{path}?uploadType=resumable&name=y", HEADERS)

    assert whole.route.method == session.route.method == INSERT
    part = b"--x\r\nContent-Type: application/http\r\n\r\nGET /storage/v1/b/data\r\n\r\n--x--"
    headers = {**HEADERS, "content-type": "multipart/mixed; boundary=x"}
    batch = app.answer("POST", f"/{DOCUMENT['batch']}", headers, part)
    assert (batch.status, b"200 OK" in batch.body) == (200, True)


@pytest.mark.parametrize("method", CLAIMED)
def test_parameters_that_are_read(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The emulator looks at no parameter that the method has not."""
    seen: set[str] = set()

    class Noted(dict[str, str]):
        """Parameters that note which of them are looked at."""

        def get(self, key: str, default: Any = None) -> Any:
            seen.add(key)
            return super().get(key, default)

        def __contains__(self, key: object) -> bool:
            seen.add(str(key))
            return super().__contains__(key)

        def __getitem__(self, key: str) -> str:
            seen.add(key)
            return super().__getitem__(key)

    app = new_app()
    read = app.read

    def noting(*given: Any) -> Any:
        call = read(*given)
        call.query = Noted(call.query)
        return call

    monkeypatch.setattr(app, "read", noting)
    answer = ask(app, method)

    known = METHODS[method]["parameters"].keys() | set(DOCUMENT["common"])
    # The project that pays may be named always; the rest is not in the document's list.
    assert answer.status in (200, 204)
    assert seen - known - {"userProject"} == set()


def conditions() -> Iterator[Any]:
    """Yield each condition of each method."""
    for method in CLAIMED:
        for name in METHODS[method]["parameters"]:
            if re.fullmatch(r"if(Source)?(Meta)?[gG]eneration(Not)?Match", name):
                yield pytest.param(method, name, id=f"{method}-{name}")


def target_of(app: GcsApp, method: str, name: str) -> tuple[int, int]:
    """Return generation and metageneration of what a condition is about."""
    service = app.service
    if method.startswith("storage.folders."):
        return 0, service.get_folder("folders", "f/").metageneration
    if method.startswith("storage.buckets."):
        return 0, service.get_bucket("data").metageneration
    moves = METHODS[method]["path"].count("{") > 2 or method == "storage.objects.compose"
    there = service.get("data", "other" if moves and "Source" not in name else "d/file")
    return there.generation, there.metageneration


@pytest.mark.parametrize("method, name", list(conditions()))
def test_conditions(method: str, name: str) -> None:
    """Each condition of the document is known: it lets pass what it should, and nothing else."""
    app = new_app()
    generation, metageneration = target_of(app, method, name)
    same = metageneration if "eta" in name else generation
    right, wrong = (same + 1, same) if "Not" in name else (same, same + 1)
    refused = ask(app, method, {name: wrong})
    reads = METHODS[method]["verb"] == "GET"

    assert refused.status == (304 if reads and "Not" in name else 412)
    assert ask(new_app_with(app), method, {name: right}).status in (200, 204)


def new_app_with(app: GcsApp) -> GcsApp:
    """Return another emulator over the same objects."""
    return GcsApp(app.service)


@pytest.mark.parametrize("method, name", list(conditions()))
def test_conditions_that_are_no_numbers(method: str, name: str) -> None:
    """What should be a number and is none is refused, and the parameter is named."""
    answer = ask(new_app(), method, {name: "one"})

    assert answer.status == 400
    assert json.loads(answer.body)["error"]["errors"][0]["location"] == name


# --- answers -------------------------------------------------------------------------------------


def faults(value: Any, kind: Any, place: str) -> Iterator[str]:
    """Yield what of an answer is not as the document has it."""
    if isinstance(kind, str) and kind in DOCUMENT["schemas"]:
        wanted = DOCUMENT["kinds"].get(kind)
        if wanted and isinstance(value, dict) and value.get("kind", wanted) != wanted:
            yield f"{place}.kind is {value['kind']}"
        kind = DOCUMENT["schemas"][kind]
    if isinstance(kind, str):
        if not fits(value, kind):
            yield f"{place} is {value!r}, no {kind}"
    elif isinstance(kind, list):
        if not isinstance(value, list):
            yield f"{place} is no list"
        for item in value:
            yield from faults(item, kind[0], f"{place}[]")
    elif not isinstance(value, dict):
        yield f"{place} is no object"
    else:
        for name, inner in value.items():
            if name in kind or "*" in kind:
                yield from faults(inner, kind.get(name, kind.get("*")), f"{place}.{name}")
            else:
                yield f"{place}.{name} is unknown"


def fits(value: Any, kind: str) -> bool:
    """Whether a value is of a simple type of the document."""
    name, _, form = kind.partition(" ")
    if name != "string":
        types: dict[str, Any] = {"boolean": bool, "integer": int, "any": object}
        return type(value) is types[name] if name != "any" else True
    if not isinstance(value, str):
        return False
    if form in ("int64", "uint64"):
        return re.fullmatch(r"-?\d+" if form == "int64" else r"\d+", value) is not None
    if form == "date-time":
        return value.endswith("Z") and datetime.fromisoformat(value).tzinfo is not None
    return True


def misfits(answer: GcsResponse, method: str) -> list[str]:
    """Return what of the answer to a method is not as the document has it."""
    assert answer.status in (200, 204), answer.body
    schema = METHODS[method]["answer"]
    if not schema or answer.status == 204:
        return [] if answer.body in (b"", b"{}") else [f"{method} answers {answer.body!r}"]
    found = json.loads(answer.body)
    assert found["kind"] == DOCUMENT["kinds"][schema]
    return list(faults(found, schema, schema))


@pytest.mark.parametrize("method", CLAIMED)
def test_answers(method: str) -> None:
    """The answer to each method has the members of its resource, each of its type."""
    assert misfits(ask(new_app(), method), method) == []


@cache
def rich() -> GcsApp:
    """Return an emulator with objects of which all is said that can be."""
    app = new_app()
    service = app.service
    said = Details(
        content_type="text/plain",
        cache_control="no-store",
        content_disposition="inline",
        content_encoding="identity",
        content_language="en",
        metadata={"k": "v"},
        storage_class="NEARLINE",
        custom_time=1.5,
        temporary_hold=True,
        retention=Retention("Unlocked", 4_000_000_000.0),
        kms_key_name="projects/p/locations/us/keyRings/r/cryptoKeys/k",
    )
    service.insert("data", "said", b"1", details=said)
    service.insert("data", "gone", b"1")
    service.delete("data", "gone")
    service.insert("folders", "a/b/c", b"1")
    service.patch_bucket("rich", {"retention": 0.0, "default_event_based_hold": False})
    for data in (b"old", b"new"):
        service.insert("rich", "twice", data)
    service.patch_bucket("rich", {"retention": 60.0, "default_event_based_hold": True})
    return app


@pytest.mark.parametrize(
    "target, method",
    [
        ("b/data/o", "storage.objects.list"),
        ("b/data/o?delimiter=/&maxResults=1", "storage.objects.list"),
        ("b/data/o?softDeleted=true", "storage.objects.list"),
        ("b/rich/o?versions=true&userProject=p", "storage.objects.list"),
        ("b/folders/o?delimiter=/&includeFoldersAsPrefixes=true", "storage.objects.list"),
        ("b/data/o/said", "storage.objects.get"),
        ("b/rich/o/twice?userProject=p", "storage.objects.get"),
        ("b/rich?userProject=p", "storage.buckets.get"),
        ("b?project=p&maxResults=2", "storage.buckets.list"),
        ("b/folders/storageLayout", "storage.buckets.getStorageLayout"),
        ("b/folders/folders?pageSize=1", "storage.folders.list"),
        ("b/folders/folders?delimiter=/&prefix=a/", "storage.folders.list"),
        ("b/folders/folders/a%2Fb%2F", "storage.folders.get"),
    ],
)
def test_answers_with_all_that_can_be_said(target: str, method: str) -> None:
    """Also rare members are the document's, each of its type."""
    assert misfits(rich().answer("GET", f"/storage/v1/{target}", HEADERS), method) == []


def test_answer_of_a_rewrite_that_goes_on() -> None:
    """The answer to a part of a rewrite has a token and no object."""
    app = new_app()
    app.service.limits = app.service.limits._replace(rewrite_bytes=2)
    answer = ask(app, "storage.objects.rewrite")

    assert misfits(answer, "storage.objects.rewrite") == []
    assert not json.loads(answer.body)["done"]


@pytest.mark.parametrize("after", ["ask", "cancel"])
def test_answer_of_an_operation(after: str) -> None:
    """An operation that is under way, done or called off is one of the document's."""
    app = new_app()
    app.service.limits = app.service.limits._replace(operation_seconds=0.01)
    begun = app.answer("POST", "/storage/v1/b/folders/folders/f%2F/renameTo/folders/g%2F", HEADERS)
    name = json.loads(begun.body)["name"].rpartition("/")[2]
    place = f"/storage/v1/b/folders/operations/{name}"
    if after == "cancel":
        app.answer("POST", f"{place}/cancel", HEADERS)
    while not json.loads((answer := app.answer("GET", place, HEADERS)).body)["done"]:
        assert misfits(answer, "storage.buckets.operations.get") == []

    assert misfits(begun, "storage.folders.rename") == []
    assert misfits(answer, "storage.buckets.operations.get") == []
    assert ("error" in json.loads(answer.body)) == (after == "cancel")
