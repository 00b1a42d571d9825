"""Files and directories over the dfs endpoint: each operation, and each way it is refused."""

from __future__ import annotations

import base64
import hashlib
import uuid
from urllib.parse import quote

import aiohttp
import pytest

from asynccommit.testing.models.adls.account import AdlsLimits
from asynccommit.testing.models.adls.refusals import CODES
from tests.testing.emulators.adls.client import WireClient


async def test_create_makes_the_parents(wire: WireClient) -> None:
    """A file in a directory that is not there makes it."""
    answer = await wire.make("a/b/c")

    assert answer.headers.keys() >= {"etag", "last-modified", "x-ms-request-id", "date"}
    assert await wire.names() == ["a", "a/b", "a/b/c"]


async def test_create_overwrites_unless_told_not_to(wire: WireClient) -> None:
    """A plain create empties what is there; If-None-Match refuses and says what it is."""
    old = (await wire.make("a", b"data")).etag

    refused = await wire.ask("PUT", "a", "resource=file", if_none_match="*")
    made = await wire.ask("PUT", "a", "resource=file")

    assert refused.brief == (409, "PathAlreadyExists")
    assert refused.headers["x-ms-existing-resource-type"] == "file"
    assert made.etag != old
    assert (await wire.head("a")).headers["content-length"] == "0"


@pytest.mark.parametrize(
    "path, kind, headers, expected",
    [
        ("d", "directory", {}, (201, "")),
        ("d", "directory", {"if_none_match": "*"}, (409, "PathAlreadyExists")),
        ("d", "file", {}, (409, "PathAlreadyExists")),
        ("f", "directory", {}, (409, "PathAlreadyExists")),
        ("f/x", "file", {}, (409, "PathConflict")),
        ("f/x", "directory", {}, (409, "PathConflict")),
        ("f", "file", {"if_match": '"0x1"'}, (412, "ConditionNotMet")),
        ("f", "link", {}, (400, "InvalidQueryParameterValue")),
        ("f", "", {}, (400, "InvalidQueryParameterValue")),
        ("f", "file", {"if_modified_since": "once"}, (400, "InvalidHeaderValue")),
    ],
)
async def test_create_over_what_is_there(
    wire: WireClient, path: str, kind: str, headers: dict[str, str], expected: tuple[int, str]
) -> None:
    """Files and directories do not take each other's place."""
    await wire.make("f")
    await wire.mkdir("d")

    answer = await wire.ask("PUT", path, f"resource={kind}", more=headers)

    assert answer.brief == expected
    if answer.status == 409 and "path" in answer.code.lower() and path in "df":
        kind_there = "directory" if path == "d" else "file"
        assert answer.headers["x-ms-existing-resource-type"] == kind_there


async def test_errors_are_json_with_id_and_time(wire: WireClient) -> None:
    """Code, and a text that ends with the request's id and the time."""
    answer = await wire.ask("DELETE", "none")

    error = answer.json["error"]
    text, request, moment = error["message"].split("\n")
    assert error["code"] == answer.code == "PathNotFound"
    assert text == "The specified path does not exist."
    assert request == f"RequestId:{answer.headers['x-ms-request-id']}"
    assert moment.startswith("Time:20")
    assert answer.headers["content-type"].startswith("application/json")


async def test_request_ids_differ_and_clients_ids_come_back_if_wanted(wire: WireClient) -> None:
    """The service's id is always there; the client's only when it asks."""
    plain = await wire.ask("HEAD", "", "resource=filesystem", x_ms_client_request_id="me")
    asked = await wire.ask(
        "HEAD",
        "",
        "resource=filesystem",
        x_ms_client_request_id="me",
        x_ms_return_client_request_id="true",
    )

    assert "x-ms-client-request-id" not in plain.headers
    assert asked.headers["x-ms-client-request-id"] == "me"
    assert uuid.UUID(plain.headers["x-ms-request-id"]) != uuid.UUID(
        asked.headers["x-ms-request-id"]
    )


async def test_append_and_flush_write_a_file(wire: WireClient) -> None:
    """Nothing is there before the flush, which changes the etag; append has none."""
    old = (await wire.make("a")).etag

    appended = await wire.ask("PATCH", "a", "action=append&position=0", body=b"hello")
    before = await wire.head("a")
    flushed = await wire.ask("PATCH", "a", "action=flush&position=5&close=true")

    assert appended.status == 202
    assert "etag" not in appended.headers
    assert appended.headers["x-ms-request-server-encrypted"] == "true"
    assert before.headers["content-length"] == "0"
    assert flushed.status == 200
    assert flushed.etag not in (old, "")
    assert (await wire.ask("GET", "a")).body == b"hello"


async def test_overridden_put_is_a_patch(wire: WireClient) -> None:
    """Java cannot send PATCH: it sends PUT and says which verb it means; its signature is PUT's."""
    await wire.make("a")
    override = {"X_Http_Method_Override": "PATCH", "Content_Type": ""}

    appended = await wire.ask(
        "PUT", "a", "action=append&position=0&timeout=90", body=b"hi", more=override
    )
    flushed = await wire.ask("PUT", "a", "action=flush&position=2&timeout=90", more=override)

    assert (appended.status, flushed.status) == (202, 200)
    assert (await wire.ask("GET", "a")).body == b"hi"


async def test_create_with_a_lease(wire: WireClient) -> None:
    """A created file is leased if the request proposes a lease; an invalid one creates nothing."""
    mine = "11111111-2222-3333-4444-555555555555"
    lease = {"x_ms_proposed_lease_id": mine, "x_ms_lease_duration": "15"}
    made = await wire.ask("PUT", "a", "resource=file", more=lease)
    wrong = await wire.ask("PUT", "b", "resource=file", more={**lease, "x_ms_lease_duration": "7"})

    assert (made.status, made.headers["x-ms-lease-id"]) == (201, mine)
    assert (await wire.head("a")).headers["x-ms-lease-state"] == "leased"
    assert wrong.brief == (400, "InvalidHeaderValue")
    assert await wire.names() == ["a"]


async def test_an_error_says_its_message_in_the_status_line(wire: WireClient) -> None:
    """A response to HEAD has no body: Hadoop's client shows the reason phrase."""
    async with aiohttp.request("HEAD", f"{wire.emulator.url}/data/none") as answer:
        assert answer.reason == CODES["NoAuthenticationInformation"][1]


async def test_append_that_flushes_answers_the_etag(wire: WireClient) -> None:
    """One request writes and commits."""
    await wire.make("a")

    answer = await wire.ask("PATCH", "a", "action=append&position=0&flush=true", body=b"hi")

    assert answer.status == 202
    assert answer.etag == (await wire.head("a")).etag
    assert (await wire.ask("GET", "a")).body == b"hi"


@pytest.mark.parametrize(
    "path, query, headers, expected",
    [
        ("a", "action=append", {}, (400, "MissingRequiredQueryParameter")),
        ("a", "action=append&position=x", {}, (400, "InvalidQueryParameterValue")),
        ("none", "action=append&position=0", {}, (404, "PathNotFound")),
        ("d", "action=append&position=0", {}, (409, "ResourceTypeMismatch")),
        ("a", "action=append&position=3", {"content_md5": "AAAA"}, (400, "Md5Mismatch")),
        ("a", "action=append&position=3", {"content_md5": "%"}, (400, "InvalidHeaderValue")),
        ("a", "action=flush&position=9", {}, (400, "InvalidFlushPosition")),
        ("none", "action=flush&position=0", {}, (404, "PathNotFound")),
        ("a", "action=flush&position=3", {"if_match": '"0x1"'}, (412, "ConditionNotMet")),
        ("a", "action=fly", {}, (400, "InvalidQueryParameterValue")),
        ("a", "", {}, (400, "InvalidQueryParameterValue")),
    ],
)
async def test_appends_and_flushes_that_are_refused(
    wire: WireClient, path: str, query: str, headers: dict[str, str], expected: tuple[int, str]
) -> None:
    """A wrong position, kind, digest or condition changes nothing."""
    await wire.make("a", b"one")
    await wire.mkdir("d")

    body = b"data" if "append" in query else b""
    answer = await wire.ask("PATCH", path, query, body=body, more=headers)

    assert answer.brief == expected
    assert (await wire.ask("GET", "a")).body == b"one"


async def test_append_with_the_right_digest(wire: WireClient) -> None:
    """Content-MD5 is checked, and holds."""
    await wire.make("a")
    digest = base64.b64encode(hashlib.md5(b"hi").digest()).decode()

    answer = await wire.ask(
        "PATCH", "a", "action=append&position=0", body=b"hi", content_md5=digest
    )

    assert answer.status == 202


async def test_status_tells_what_a_path_is(wire: WireClient) -> None:
    """HEAD has the size of a file, the kind, owner and permissions, and the lease."""
    await wire.make("d/a", b"data")

    file, directory = await wire.head("d/a"), await wire.head("d")

    assert file.headers["content-length"] == "4"
    assert file.headers["x-ms-resource-type"] == "file"
    assert file.headers["x-ms-lease-state"] == "available"
    assert file.headers["x-ms-owner"] == "$superuser"
    assert directory.headers["x-ms-resource-type"] == "directory"
    assert directory.headers["content-length"] == "0"


@pytest.mark.parametrize(
    "headers, status",
    [
        ({"if_match": "*"}, 200),
        ({"if_match": '"0x1"'}, 412),
        ({"if_none_match": '"0x1"'}, 200),
        ({"if_none_match": "*"}, 304),
        ({"if_modified_since": "Fri, 01 Jan 2100 00:00:00 GMT"}, 304),
    ],
)
async def test_conditions_of_a_status(
    wire: WireClient, headers: dict[str, str], status: int
) -> None:
    """What was not asked for under these conditions is not told."""
    await wire.make("a")

    answer = await wire.ask("HEAD", "a", "action=getStatus", more=headers)

    assert answer.status == status
    assert (await wire.head("a")).status == 200


@pytest.mark.parametrize(
    "headers, status, body",
    [
        ({}, 200, b"0123456789"),
        ({"range": "bytes=2-4"}, 206, b"234"),
        ({"x_ms_range": "bytes=8-"}, 206, b"89"),
        ({"range": "bytes=0-999"}, 206, b"0123456789"),
        ({"range": "pages=1-2"}, 200, b"0123456789"),
    ],
)
async def test_reading_a_range(
    wire: WireClient, headers: dict[str, str], status: int, body: bytes
) -> None:
    """A range is served as such; what is none is the whole."""
    await wire.make("a", b"0123456789")

    answer = await wire.ask("GET", "a", more=headers)

    assert (answer.status, answer.body) == (status, body)
    if status == 206:
        start = b"0123456789".index(body)
        shown = f"bytes {start}-{start + len(body) - 1}/10"
        assert answer.headers["content-range"] == shown


async def test_reads_that_are_refused(wire: WireClient) -> None:
    """Behind the end, a directory, nothing, another etag."""
    await wire.make("d/a", b"data")

    behind = await wire.ask("GET", "d/a", range="bytes=4-")
    directory = await wire.ask("GET", "d")
    missing = await wire.ask("GET", "none")
    changed = await wire.ask("GET", "d/a", if_match='"0x1"')

    assert behind.brief == (416, "InvalidRange")
    assert directory.brief == (409, "ResourceTypeMismatch")
    assert missing.brief == (404, "PathNotFound")
    assert changed.brief == (412, "ConditionNotMet")


async def test_listing_is_of_strings(wire: WireClient) -> None:
    """Every value is a string, etags are bare, and files have no isDirectory."""
    etag = (await wire.make("d/a", b"data")).etag

    answer = await wire.ask("GET", "", "resource=filesystem&recursive=true&upn=false")

    directory, file = answer.json["paths"]
    assert directory["isDirectory"] == "true"
    assert file.keys() == {
        *("contentLength", "creationTime", "etag", "group", "lastModified"),
        *("name", "owner", "permissions"),
    }
    assert (file["name"], file["contentLength"], file["etag"]) == ("d/a", "4", etag.strip('"'))
    assert all(isinstance(value, str) for value in file.values())
    assert int(file["creationTime"]) > 130_000_000_000_000_000


async def test_listing_comes_in_pages(wire: WireClient) -> None:
    """x-ms-continuation leads to the next page and is absent on the last."""
    for number in range(5):
        await wire.make(f"d/f{number}")
    query, names = "resource=filesystem&recursive=false&directory=%2Fd&maxResults=2", []
    token: str | None = ""

    while token is not None:
        more = f"&continuation={quote(token, safe='')}" if token else ""
        answer = await wire.ask("GET", "", query + more)
        assert len(answer.json["paths"]) <= 2
        names += [entry["name"] for entry in answer.json["paths"]]
        token = answer.headers.get("x-ms-continuation")

    assert names == [f"d/f{number}" for number in range(5)]


@pytest.mark.parametrize(
    "query, expected",
    [
        ("recursive=true&directory=none", (404, "PathNotFound")),
        ("recursive=true&continuation=%3D%3D", (400, "InvalidQueryParameterValue")),
        ("recursive=maybe", (400, "InvalidQueryParameterValue")),
        ("recursive=true&maxResults=0", (400, "OutOfRangeQueryParameterValue")),
        ("recursive=true&maxResults=-1", (400, "OutOfRangeQueryParameterValue")),
        ("recursive=true&maxResults=x", (400, "InvalidQueryParameterValue")),
        ("", (400, "MissingRequiredQueryParameter")),
    ],
)
async def test_listings_that_are_refused(
    wire: WireClient, query: str, expected: tuple[int, str]
) -> None:
    """A missing directory, a token of another making, values that are none."""
    answer = await wire.ask("GET", "", f"resource=filesystem&{query}")

    assert answer.brief == expected


async def test_deletes(wire: WireClient) -> None:
    """A file once, a directory only if it is empty or all of it is meant."""
    await wire.make("d/a")

    kept = await wire.ask("DELETE", "d", "recursive=false")
    changed = await wire.ask("DELETE", "d/a", if_match='"0x1"')
    gone = await wire.ask("DELETE", "d", "recursive=true&timeout=90")
    again = await wire.ask("DELETE", "d", "recursive=true")

    assert kept.brief == (409, "DirectoryNotEmpty")
    assert changed.brief == (412, "ConditionNotMet")
    assert gone.status == 200
    assert "x-ms-continuation" not in gone.headers
    assert again.brief == (404, "PathNotFound")


async def test_delete_in_parts(wire: WireClient) -> None:
    """A large directory goes in several requests, each with the last one's token."""
    wire.emulator.model.limits = AdlsLimits(delete=2)
    for number in range(5):
        await wire.make(f"d/f{number}")
    token, requests = "", 0

    while requests == 0 or token:
        more = f"&continuation={quote(token, safe='')}" if token else ""
        answer = await wire.ask("DELETE", "d", f"recursive=true{more}")
        assert answer.status == 200
        token, requests = answer.headers.get("x-ms-continuation", ""), requests + 1

    assert requests > 2
    assert await wire.names() == []


async def test_lease_from_acquire_to_release(wire: WireClient) -> None:
    """What is leased is changed only by who names the lease."""
    await wire.make("a")
    lease = str(uuid.UUID(int=5))

    acquired = await wire.ask(
        "POST",
        "a",
        x_ms_lease_action="acquire",
        x_ms_lease_duration="15",
        x_ms_proposed_lease_id=lease,
    )
    status = await wire.head("a")
    refused = await wire.ask("DELETE", "a")
    wrong = await wire.ask("DELETE", "a", x_ms_lease_id=str(uuid.UUID(int=6)))
    second = await wire.ask("POST", "a", x_ms_lease_action="acquire", x_ms_lease_duration="-1")
    renewed = await wire.ask("POST", "a", x_ms_lease_action="renew", x_ms_lease_id=lease)
    released = await wire.ask("POST", "a", x_ms_lease_action="release", x_ms_lease_id=lease)

    assert (acquired.status, acquired.headers["x-ms-lease-id"]) == (201, lease)
    assert status.headers["x-ms-lease-state"] == "leased"
    assert status.headers["x-ms-lease-status"] == "locked"
    assert refused.brief == (412, "LeaseIdMissing")
    assert wrong.brief == (412, "LeaseIdMismatch")
    assert second.brief == (409, "LeaseAlreadyPresent")
    assert (renewed.status, released.status) == (200, 200)
    assert (await wire.ask("DELETE", "a")).status == 200


async def test_lease_is_broken(wire: WireClient) -> None:
    """A break answers when the lease ends."""
    await wire.make("a")
    await wire.ask("POST", "a", x_ms_lease_action="acquire", x_ms_lease_duration="-1")

    broken = await wire.ask("POST", "a", x_ms_lease_action="break", x_ms_lease_break_period="0")

    assert (broken.status, broken.headers["x-ms-lease-time"]) == (202, "0")
    assert (await wire.ask("DELETE", "a")).status == 200


@pytest.mark.parametrize(
    "headers, code",
    [
        ({}, "MissingRequiredHeader"),
        ({"x_ms_lease_action": "borrow"}, "InvalidHeaderValue"),
        ({"x_ms_lease_action": "acquire", "x_ms_lease_duration": "long"}, "InvalidHeaderValue"),
        ({"x_ms_lease_action": "acquire", "x_ms_lease_duration": "3"}, "InvalidHeaderValue"),
    ],
)
async def test_leases_that_are_none(wire: WireClient, headers: dict[str, str], code: str) -> None:
    """An action and a duration that there are not."""
    await wire.make("a")

    answer = await wire.ask("POST", "a", more=headers)

    assert answer.brief == (400, code)


async def test_append_and_flush_with_a_lease_of_their_own(wire: WireClient) -> None:
    """The first append takes the lease, the last flush gives it back."""
    await wire.make("a")
    lease = str(uuid.UUID(int=5))

    taken = await wire.ask(
        "PATCH",
        "a",
        "action=append&position=0",
        body=b"hi",
        x_ms_lease_action="acquire",
        x_ms_lease_duration="15",
        x_ms_proposed_lease_id=lease,
    )
    during = await wire.head("a")
    flushed = await wire.ask(
        "PATCH",
        "a",
        "action=flush&position=2",
        x_ms_lease_action="release",
        x_ms_lease_id=lease,
    )

    assert taken.headers["x-ms-lease-id"] == lease
    assert during.headers["x-ms-lease-state"] == "leased"
    assert flushed.status == 200
    assert (await wire.head("a")).headers["x-ms-lease-state"] == "available"


async def test_properties_come_back_byte_for_byte(wire: WireClient) -> None:
    """Values are base64 of any bytes; the status alone leaves them out."""
    old = (await wire.make("a")).etag
    value = base64.b64encode("grün".encode()).decode()

    answer = await wire.ask("PATCH", "a", "action=setProperties", x_ms_properties=f"k={value},e=")
    full = await wire.ask("HEAD", "a")

    assert answer.status == 200
    assert answer.etag not in ("", old)
    assert full.headers["x-ms-properties"] == f"k={value},e="
    assert "x-ms-properties" not in (await wire.head("a")).headers


async def test_properties_cannot_forge_headers(wire: WireClient) -> None:
    """A line end in a value stays in it; in a name it is refused."""
    value = base64.b64encode(b"v\r\nx-forged: 1").decode()
    await wire.make("a")

    await wire.ask("PATCH", "a", "action=setProperties", x_ms_properties=f"k={value}")
    refused = await wire.ask("PATCH", "a", "action=setProperties", x_ms_properties="k l=dg==")
    told = await wire.ask("HEAD", "a")

    assert told.headers["x-ms-properties"] == f"k={value}"
    assert "x-forged" not in told.headers
    assert refused.brief == (400, "InvalidPropertyName")


async def test_create_with_everything(wire: WireClient) -> None:
    """Permissions, umask, properties and content headers may come with the create."""
    await wire.ask(
        "PUT",
        "a",
        "resource=file",
        x_ms_permissions="0777",
        x_ms_umask="0027",
        x_ms_properties="k=dg==",
        x_ms_content_type="text/csv",
        x_ms_cache_control="no-store",
    )

    answer = await wire.ask("HEAD", "a")

    assert answer.headers["x-ms-permissions"] == "rwxr-x---"
    assert answer.headers["x-ms-properties"] == "k=dg=="
    assert answer.headers["content-type"] == "text/csv"
    assert answer.headers["cache-control"] == "no-store"


async def test_access_control(wire: WireClient) -> None:
    """Owner, group, permissions and list are set and told."""
    await wire.make("d/a")

    answer = await wire.ask(
        "PATCH", "d/a", "action=setAccessControl", x_ms_owner="me", x_ms_permissions="rwxrwxrwx"
    )
    told = await wire.ask("HEAD", "d/a", "action=getAccessControl&upn=false")

    assert answer.status == 200
    assert told.headers["x-ms-owner"] == "me"
    assert told.headers["x-ms-permissions"] == "rwxrwxrwx"
    assert told.headers["x-ms-acl"] == "user::rwx,group::rwx,other::rwx"


async def test_access_control_of_a_whole_tree(wire: WireClient) -> None:
    """The recursive form counts what it set."""
    await wire.make("d/a")
    await wire.make("d/b/c")

    answer = await wire.ask(
        "PATCH",
        "d",
        "action=setAccessControlRecursive&mode=set",
        x_ms_acl="user::rwx,group::---,other::---",
    )

    assert answer.json["directoriesSuccessful"] == 2
    assert answer.json["filesSuccessful"] == 2
    assert (await wire.head("d/b/c")).headers["x-ms-permissions"] == "rwx------"


@pytest.mark.parametrize("method", ["OPTIONS", "POST"])
async def test_verbs_without_a_meaning(wire: WireClient, method: str) -> None:
    """A verb that the service does not know here is refused."""
    answer = await wire.ask(method, "a" if method == "OPTIONS" else "")

    assert answer.status in (400, 405)


async def test_names_of_any_characters(wire: WireClient) -> None:
    """Spaces, signs and other scripts come through listings, renames and reads."""
    name = "d/a b+c%2F#?é漢\U0001f600'&="
    await wire.make(name, b"x")

    assert (await wire.ask("GET", name)).body == b"x"
    assert (await wire.rename(name, "plain")).status == 201
    assert (await wire.rename("plain", name)).status == 201
    assert await wire.names() == ["d", name]


@pytest.mark.parametrize("place", ["/data/%ff", "/data/a%00b"])
async def test_paths_that_are_none(wire: WireClient, place: str) -> None:
    """Bytes that are no UTF-8, and a NUL, are refused."""
    answer = await wire.send("HEAD", f"/{wire.emulator.account}{place}", "action=getStatus")

    assert answer.brief == (400, "InvalidUri")


async def test_expiry_of_a_file(wire: WireClient) -> None:
    """It is set at the create or later, and shown by both endpoints and in listings."""
    until = "Fri, 01 Jan 2100 00:00:00 GMT"
    absolute = {"x_ms_expiry_option": "Absolute", "x_ms_expiry_time": until}
    await wire.ask("PUT", "a", "resource=file", more=absolute)
    await wire.ask("PUT", "b", "resource=file")
    relative = {"x_ms_expiry_option": "RelativeToNow", "x_ms_expiry_time": "60000"}
    later = await wire.ask("PUT", "b", "comp=expiry", more=relative)

    told = [(await wire.ask("HEAD", name)).headers for name in ("a", "b")]
    listed = (await wire.ask("GET", "", "resource=filesystem&recursive=false")).json["paths"]
    never = await wire.ask("PUT", "b", "comp=expiry", x_ms_expiry_option="NeverExpire")

    assert later.status == never.status == 200
    assert told[0]["x-ms-expiry-time"] == until
    assert "x-ms-expiry-time" in told[1]
    assert ["expiryTime" in entry for entry in listed] == [True, True]
    assert "x-ms-expiry-time" not in (await wire.ask("HEAD", "b")).headers


@pytest.mark.parametrize(
    "option,moment", [("Absolute", ""), ("Never", ""), ("RelativeToNow", "-1"), ("", "1")]
)
async def test_expiry_that_is_none(wire: WireClient, option: str, moment: str) -> None:
    """It is refused, and makes nothing."""
    given = {"x_ms_expiry_option": option, "x_ms_expiry_time": moment}
    answer = await wire.ask("PUT", "a", "resource=file", more=given)

    assert answer.brief == (400, "InvalidHeaderValue")
    assert (await wire.ask("HEAD", "a")).status == 404


async def test_listings_begin_where_they_are_told(wire: WireClient) -> None:
    """A path in the directory, for the blob endpoint a whole one; it is listed itself."""
    for name in ("x/a", "x/b", "x/c", "y"):
        await wire.make(name)

    lake = await wire.ask("GET", "", "resource=filesystem&recursive=true&directory=x&beginFrom=b")
    blob = await wire.ask(
        "GET", "", "restype=container&comp=list&delimiter=%2F&prefix=x%2F&startFrom=x%2Fb"
    )
    after = await wire.ask(
        "GET", "", "restype=container&comp=list&delimiter=%2F&prefix=x%2F&startFrom=y"
    )

    assert [entry["name"] for entry in lake.json["paths"]] == ["x/b", "x/c"]
    assert [b"<Name>x/%c</Name>" % letter in blob.body for letter in b"abc"] == [False, True, True]
    assert b"<Name>" not in after.body


async def test_root_has_no_properties(wire: WireClient) -> None:
    """Neither can they be read, as Hadoop's tests expect; its status can."""
    read = await wire.ask("HEAD", "")
    written = await wire.ask("PATCH", "", "action=setProperties", x_ms_properties="a=Yg==")
    status = await wire.ask("HEAD", "", "action=getStatus")

    assert (read.brief, written.brief) == ((400, "InvalidUri"), (400, "InvalidUri"))
    assert status.status == 200


async def test_append_blob_has_no_flush(wire: WireClient) -> None:
    """Each append is seen at once and only at the end, as Hadoop's client expects."""
    made = await wire.ask("PUT", "a", "resource=file&blobtype=appendblob")
    first = await wire.ask("PATCH", "a", "action=append&position=0", body=b"one")
    again = await wire.ask("PATCH", "a", "action=append&position=0", body=b"one")
    gap = await wire.ask("PATCH", "a", "action=append&position=4", body=b"x")
    await wire.ask("PATCH", "a", "action=append&position=3", body=b"two")
    flushed = await wire.ask("PATCH", "a", "action=flush&position=6&close=true")

    assert (made.status, first.status, flushed.status) == (201, 202, 200)
    assert (again.brief, gap.brief) == ((400, "InvalidQueryParameterValue"),) * 2
    assert (await wire.ask("GET", "a")).body == b"onetwo"


async def test_kinds_of_blobs_that_are_unknown_are_refused(wire: WireClient) -> None:
    """A file is a block blob or an append blob; a directory is never one."""
    page = await wire.ask("PUT", "a", "resource=file&blobtype=pageblob")
    directory = await wire.ask("PUT", "d", "resource=directory&blobtype=appendblob")
    block = await wire.ask("PUT", "d", "comp=appendblock", body=b"x")

    assert page.brief == (400, "InvalidQueryParameterValue")
    assert (directory.status, block.brief) == (201, (409, "InvalidBlobType"))
    assert (await wire.ask("PUT", "b", "resource=file&blobtype=blockblob")).status == 201


NODE = {"user_agent": "azsdk-js-azure-storage-blob/12.32.0 core-rest-pipeline/1.24.0 Node/20.20.2"}


@pytest.mark.parametrize("query", ["recursive=true", "recursive=true&paginated=false"])
async def test_tree_is_deleted_by_a_client_that_says_blob(wire: WireClient, query: str) -> None:
    """A parameter of the dfs endpoint decides, not an agent, as that of Azure's SDK for Node."""
    await wire.make("d/e/f", b"x")

    answer = await wire.ask("DELETE", "d", query, more=NODE)

    assert answer.status == 200
    assert await wire.names() == []


async def test_missing_file_has_the_dfs_code_for_a_client_that_says_blob(wire: WireClient) -> None:
    """Azure's SDK for Node looks for it in ``deleteIfExists``."""
    answer = await wire.ask("DELETE", "f", "paginated=false", more=NODE)

    assert answer.brief == (404, "PathNotFound")


async def test_dfs_host_is_the_dfs_endpoint_for_every_client(wire: WireClient) -> None:
    """Neither the agent nor a header of the blob endpoint changes it."""
    host = {"Host": f"{wire.emulator.account}.dfs.core.windows.net"}
    said = {"User-Agent": NODE["user_agent"], "x-ms-delete-snapshots": "include"}

    plain = await wire.send("HEAD", "/data/f", headers={**host, **said})
    deleted = await wire.send("DELETE", "/data/f", headers={**host, **said})

    assert plain.brief == deleted.brief == (404, "PathNotFound")
