"""Keys of the customer's: what a request says of them."""

from __future__ import annotations

import base64
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import OptionError
from asynccommit.stores.gcs.keys import encryption_headers, kms_key_name

RAW = bytes(range(32))
KEY = base64.b64encode(RAW).decode()
HASH = base64.b64encode(sha256(RAW).digest()).decode()


@given(st.binary(min_size=32, max_size=32))
def test_a_key_is_sent_with_its_hash(raw: bytes) -> None:
    """For what is written or read, and for what is copied, under Google's names."""
    text = base64.b64encode(raw).decode()
    written, source = encryption_headers(raw)

    assert written == {
        "x-goog-encryption-algorithm": "AES256",
        "x-goog-encryption-key": text,
        "x-goog-encryption-key-sha256": base64.b64encode(sha256(raw).digest()).decode(),
    }
    assert list(source) == [name.replace("goog-", "goog-copy-source-") for name in written]
    assert list(source.values()) == list(written.values())
    assert encryption_headers(f" {text}\n")[0] == written


def test_hash_and_algorithm_may_be_said() -> None:
    """If they are those of the key."""
    assert encryption_headers(KEY, HASH, "AES256") == encryption_headers(RAW)


@pytest.mark.parametrize(
    "key, digest, algorithm, message",
    [
        (KEY[:-4], "", "", "encryption_key is not 32 bytes"),
        ("hunter2", "", "", "encryption_key is not 32 bytes"),
        (b"hunter2", "", "", "encryption_key is not 32 bytes"),
        ("hunter2 \u0430", "", "", "encryption_key is not 32 bytes"),
        (KEY, KEY, "", "another hash than encryption_key.hash says"),
        (KEY, "", "AES128", "the encryption algorithm is 'AES128': there is AES256 only"),
    ],
)
def test_a_key_that_is_none_is_not_repeated(
    key: str | bytes, digest: str, algorithm: str, message: str
) -> None:
    """The message says how one is made."""
    with pytest.raises(OptionError, match=message) as caught:
        encryption_headers(key, digest, algorithm)
    assert "hunter2" not in str(caught.value)
    assert KEY[:-4] not in str(caught.value)


def test_a_key_of_cloud_kms_has_a_path() -> None:
    """Which is sent as it is."""
    name = "projects/p/locations/europe-west3/keyRings/r/cryptoKeys/k"

    assert kms_key_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "k",
        "projects/p/locations/l/keyRings/r/cryptoKeys/",
        "projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1",
        "projects/p q/locations/l/keyRings/r/cryptoKeys/k",
    ],
)
def test_what_is_no_key_of_cloud_kms_is_named(name: str) -> None:
    """It is no secret."""
    with pytest.raises(OptionError, match=r"kms_key_name is .*: say projects/PROJECT"):
        kms_key_name(name)
