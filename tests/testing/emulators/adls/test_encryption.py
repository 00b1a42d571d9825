"""Encryption headers on the wire of both endpoints."""

from __future__ import annotations

import base64
import hashlib

from tests.testing.emulators.adls.client import WireClient

AGENT = {"user_agent": "azsdk-python-storage-blob/12.0"}


def _key(letter: bytes, **changed: str) -> dict[str, str]:
    """Return the headers of a key of 32 letters."""
    key = letter * 32
    given = {
        "x_ms_encryption_key": base64.b64encode(key).decode(),
        "x_ms_encryption_key_sha256": base64.b64encode(hashlib.sha256(key).digest()).decode(),
        "x_ms_encryption_algorithm": "AES256",
    }
    return {**given, **changed}


async def test_file_with_a_customer_provided_key(wire: WireClient) -> None:
    """Each request for its content must give the key; the answer shows its digest."""
    key, other = _key(b"k"), _key(b"o")
    digest = key["x_ms_encryption_key_sha256"]
    context = {"x_ms_encryption_context": "ctx"}

    made = await wire.ask("PUT", "f", "resource=file", more={**key, **context})
    bare = await wire.ask("PATCH", "f", "action=append&position=0&flush=true", body=b"data")
    wrong = await wire.ask(
        "PATCH", "f", "action=append&position=0&flush=true", body=b"data", more=other
    )
    right = await wire.ask(
        "PATCH", "f", "action=append&position=0&flush=true", body=b"data", more=key
    )
    unread = await wire.ask("GET", "f")
    read = await wire.ask("GET", "f", more=key)

    assert (made.status, made.headers["x-ms-encryption-key-sha256"]) == (201, digest)
    assert bare.brief == (409, "BlobUsesCustomerSpecifiedEncryption")
    assert wrong.brief == (409, "BlobCustomerSpecifiedEncryptionMismatch")
    assert (right.status, right.headers["x-ms-encryption-key-sha256"]) == (202, digest)
    assert unread.brief == (409, "BlobUsesCustomerSpecifiedEncryption")
    assert (read.status, read.body) == (200, b"data")
    assert read.headers["x-ms-encryption-context"] == "ctx"


async def test_what_needs_no_key(wire: WireClient) -> None:
    """A status query, a listing, access control, a move and a delete, as Hadoop's tests expect."""
    key = _key(b"k")
    await wire.ask("PUT", "f", "resource=file", more={**key, "x_ms_encryption_context": "ctx"})

    status = await wire.ask("HEAD", "f", "action=getStatus")
    listed = await wire.ask("GET", "", "resource=filesystem&recursive=false")
    access = await wire.ask("PATCH", "f", "action=setAccessControl", x_ms_owner="me")
    moved = await wire.ask("PUT", "g", x_ms_rename_source="/data/f")
    deleted = await wire.ask("DELETE", "g")

    assert (status.status, status.headers["x-ms-encryption-context"]) == (200, "ctx")
    assert listed.json["paths"][0]["EncryptionContext"] == "ctx"
    digest = key["x_ms_encryption_key_sha256"]
    assert listed.json["paths"][0]["CustomerProvidedKeySha256"] == digest
    assert [access.status, moved.status, deleted.status] == [200, 201, 200]


async def test_blob_with_a_customer_provided_key(wire: WireClient) -> None:
    """The blob endpoint asks for it as well, and copies nothing that has one."""
    key = _key(b"k")
    put = await wire.ask("PUT", "f", body=b"data", x_ms_blob_type="BlockBlob", more=key)
    bare = await wire.ask("HEAD", "f", more=AGENT)
    told = await wire.ask("HEAD", "f", more={**AGENT, **key})
    copied = await wire.ask("PUT", "g", x_ms_copy_source=f"{wire.emulator.url}/data/f")

    assert put.status == 201
    assert bare.brief == (409, "BlobUsesCustomerSpecifiedEncryption")
    assert told.headers["x-ms-encryption-key-sha256"] == key["x_ms_encryption_key_sha256"]
    assert copied.brief == (409, "BlobUsesCustomerSpecifiedEncryption")


async def test_key_that_is_none(wire: WireClient) -> None:
    """A key of another length, digest or algorithm is refused, and makes nothing."""
    short = base64.b64encode(b"short").decode()
    for given in (
        _key(b"k", x_ms_encryption_key=short),
        _key(b"k", x_ms_encryption_key="?"),
        _key(b"k", x_ms_encryption_key_sha256=_key(b"o")["x_ms_encryption_key_sha256"]),
        _key(b"k", x_ms_encryption_algorithm="ROT13"),
        _key(b"k", x_ms_encryption_scope="mine"),
    ):
        answer = await wire.ask("PUT", "f", "resource=file", more=given)
        assert answer.brief == (400, "InvalidHeaderValue")
    missing = await wire.ask("PUT", "f", "resource=file", x_ms_encryption_key=short)

    assert missing.brief == (400, "MissingRequiredHeader")
    assert (await wire.ask("HEAD", "f")).status == 404


async def test_default_scope_of_a_container(wire: WireClient) -> None:
    """It is shown with the container, and with what is made in it."""
    wire.filesystem = "scoped"
    scope = {
        "x_ms_default_encryption_scope": "mine",
        "x_ms_deny_encryption_scope_override": "true",
    }
    await wire.ask("PUT", "", "restype=container", more=scope)
    refused = await wire.ask("PUT", "f", "resource=file", x_ms_encryption_scope="other")
    await wire.ask("PUT", "f", "resource=file")

    told = await wire.ask("HEAD", "", "resource=filesystem")
    blob = await wire.ask("HEAD", "", "restype=container")
    file = await wire.ask("HEAD", "f")

    assert refused.brief == (403, "RequestForbiddenByContainerEncryptionPolicy")
    assert told.headers["x-ms-default-encryption-scope"] == "mine"
    assert blob.headers["x-ms-deny-encryption-scope-override"] == "true"
    assert file.headers["x-ms-encryption-scope"] == "mine"


async def test_properties_show_the_acl(wire: WireClient) -> None:
    """Both endpoints do; a status query does not."""
    await wire.ask("PUT", "f", "resource=file")

    told = await wire.ask("HEAD", "f", more=AGENT)
    brief = await wire.ask("HEAD", "f", "action=getStatus")

    assert told.headers["x-ms-acl"] == "user::rw-,group::r--,other::---"
    assert "x-ms-acl" not in brief.headers
