"""Which bucket, and where its requests go."""

from __future__ import annotations

import pytest

from asynccommit.errors import OptionError
from asynccommit.stores.gcs.endpoint import GcsEndpoint, find_place
from asynccommit.stores.urls import parse_url

CLOUD = "https://storage.googleapis.com"
EMULATOR = "STORAGE_EMULATOR_HOST"
UNIVERSE = "GOOGLE_CLOUD_UNIVERSE_DOMAIN"


def place(
    url: str = "gs://data/t",
    endpoint: str | None = None,
    environ: dict[str, str] | None = None,
    service: str = "",
) -> GcsEndpoint:
    """Find the place of a URL."""
    given = None if endpoint is None else ("endpoint_url", endpoint)
    return find_place(parse_url(url), given, service, environ or {})


@pytest.mark.parametrize("scheme", ["gs", "gcs", "GS"])
@pytest.mark.parametrize(
    "bucket",
    ["data", "my-data_2", "123", "a.b.example.com", "a" * 63, ".".join(["a" * 54] * 4)],
)
def test_a_bucket_is_the_authority(scheme: str, bucket: str) -> None:
    """Every name that Google allows."""
    found = place(f"{scheme}://{bucket}/t")

    assert found == GcsEndpoint(bucket, CLOUD)
    assert found.bucket_path == f"/storage/v1/b/{bucket}"
    assert found.objects == f"/storage/v1/b/{bucket}/o"
    assert found.uploads == f"/upload/storage/v1/b/{bucket}/o"
    assert found.batches == "/batch/storage/v1"
    assert found.limit == f"gs://{bucket}"


@pytest.mark.parametrize(
    "url",
    [
        "gs://ab/t",
        f"gs://{'a' * 64}/t",
        f"gs://{'.'.join(['a' * 63] * 4)}/t",
        f"gs://a.{'b' * 64}/t",
        "gs://Data/t",
        "gs://-data/t",
        "gs://data-/t",
        "gs://data_/t",
        "gs://data./t",
        "gs://a..b/t",
        "gs://me@data/t",
        "gs://data:80/t",
        "gs://data~1/t",
    ],
)
def test_what_is_no_bucket_is_refused(url: str) -> None:
    """The message says what a name has."""
    with pytest.raises(OptionError, match="is not the name of a bucket: expected"):
        place(url)


def test_a_url_without_a_bucket_is_refused() -> None:
    """The message says how it is written."""
    with pytest.raises(OptionError, match="names no bucket: expected gs://BUCKET/path"):
        place("gs:/t")


@pytest.mark.parametrize(
    "endpoint, environ, expected",
    [
        (None, {}, CLOUD),
        (None, {EMULATOR: ""}, CLOUD),
        (None, {EMULATOR: "default"}, CLOUD),
        (None, {EMULATOR: "127.0.0.1:4443"}, "http://127.0.0.1:4443"),
        (None, {EMULATOR: " localhost:4443/ "}, "http://localhost:4443"),
        (None, {EMULATOR: "http://0.0.0.0:4443"}, "http://0.0.0.0:4443"),
        (None, {EMULATOR: "https://emulator:4443"}, "https://emulator:4443"),
        (None, {EMULATOR: "http://[::1]:4443"}, "http://[::1]:4443"),
        (None, {EMULATOR: "emulator"}, "http://emulator"),
        (None, {UNIVERSE: "example.goog"}, "https://storage.example.goog"),
        (None, {UNIVERSE: "example.goog", EMULATOR: "h:1"}, "http://h:1"),
        ("http://h:2", {EMULATOR: "h:1"}, "http://h:2"),
        (f"{CLOUD}/", {EMULATOR: "h:1"}, CLOUD),
        ("HTTPS://Storage.GoogleAPIs.com", {}, CLOUD),
        ("https://storage.us-east1.rep.googleapis.com", {},
         "https://storage.us-east1.rep.googleapis.com"),
    ],
)  # fmt: skip
def test_requests_go_where_options_or_environment_say(
    endpoint: str | None, environ: dict[str, str], expected: str
) -> None:
    """An option counts before the environment; a host alone is an emulator without TLS."""
    assert place(endpoint=endpoint, environ=environ).origin == expected


@pytest.mark.parametrize(
    "endpoint, prefix",
    [
        ("http://h:1/storage/v1/", ""),
        ("http://h:1/storage/v1", ""),
        ("http://h:1/gcs", "/gcs"),
        ("http://h:1/gcs/storage/v1", "/gcs"),
    ],
)
def test_a_path_before_the_interface_is_kept(endpoint: str, prefix: str) -> None:
    """Whoever copied the whole URL of the interface means the same as without it."""
    found = place(endpoint=endpoint)

    assert found.objects == f"{prefix}/storage/v1/b/data/o"
    assert found.uploads == f"{prefix}/upload/storage/v1/b/data/o"
    assert found.batches == f"{prefix}/batch/storage/v1"


@pytest.mark.parametrize("service", ["storage/v1beta/", "/storage/v1beta", "storage/v1beta"])
def test_another_version_of_the_interface_may_be_said(service: str) -> None:
    """As Hadoop's key has it."""
    found = place(service=service)

    assert found.objects == "/storage/v1beta/b/data/o"
    assert found.batches == "/batch/storage/v1beta"


@pytest.mark.parametrize("service", ["a b", "../v1", "storage/..", "storage//v1", "?x"])
def test_what_is_no_path_is_refused(service: str) -> None:
    """The message names Hadoop's key."""
    with pytest.raises(OptionError, match=r"fs\.gs\.storage\.service\.path is"):
        place(service=service)


@pytest.mark.parametrize(
    "endpoint, environ, real, emulator",
    [
        (None, {}, True, False),
        (None, {EMULATOR: "default"}, True, False),
        (None, {EMULATOR: "h:1"}, False, True),
        (None, {UNIVERSE: "example.goog"}, True, False),
        ("https://storage.example.goog", {UNIVERSE: "example.goog"}, True, False),
        ("https://storage.example.goog", {}, False, False),
        ("https://www.googleapis.com", {}, True, False),
        ("https://storage.googleapis.com:443", {}, True, False),
        ("https://storage.googleapis.com.example.com", {}, False, False),
        ("https://notgoogleapis.com", {}, False, False),
        ("http://h:1", {EMULATOR: "h:1"}, False, False),
    ],
)
def test_googles_service_is_known_by_its_name(
    endpoint: str | None, environ: dict[str, str], real: bool, emulator: bool
) -> None:
    """Whatever else answers is an emulator, or stands in for it."""
    found = place(endpoint=endpoint, environ=environ)

    assert (found.real, found.emulator) == (real, emulator)
    assert (found.limit == "gs://data") is real


def test_the_same_bucket_elsewhere_is_another() -> None:
    """Two emulators share no limit."""
    assert place(endpoint="http://h:1").limit == "gs://data@h:1"


@pytest.mark.parametrize(
    "endpoint",
    [
        "storage.googleapis.com",
        "localhost:4443",
        "ftp://h",
        "http://",
        "http://a b",
        "http://user:word@h:1",
        "http://h:1?x=y",
        "http://h:1/#x",
        "http://h:123456",
        "http://[::1",
        "http://h/../x",
        "http://h/./x",
        "http://h//x",
    ],
)
def test_what_is_no_endpoint_is_refused(endpoint: str) -> None:
    """The message says how one is written, and repeats no password."""
    with pytest.raises(
        OptionError, match="endpoint_url is not the URL of a service: expected"
    ) as caught:
        place(endpoint=endpoint)
    assert "word" not in str(caught.value)


@pytest.mark.parametrize(
    "environ, message",
    [
        ({EMULATOR: "http://user:word@h:1"}, f"{EMULATOR} is not the URL"),
        ({UNIVERSE: "nowhere"}, f"{UNIVERSE} is 'nowhere': expected a domain"),
        ({UNIVERSE: "a/b.c"}, f"{UNIVERSE} is"),
    ],
)
def test_a_wrong_environment_is_named(environ: dict[str, str], message: str) -> None:
    """By its variable."""
    with pytest.raises(OptionError, match=message) as caught:
        place(environ=environ)
    assert "word" not in str(caught.value)


@pytest.mark.parametrize(
    "endpoint, fine",
    [
        ("https://10.0.0.1:1", True),
        ("http://127.0.0.1:4443", True),
        ("http://localhost:1", True),
        ("http://[::1]:1", True),
        ("http://10.0.0.1:1", False),
        ("http://emulator:4443", False),
        ("http://localhost.example.com", False),
        ("http://storage.googleapis.com", False),
    ],
)
def test_secrets_cross_no_network_in_the_clear(endpoint: str, fine: bool) -> None:
    """This machine is no network."""
    found = place(endpoint=endpoint)
    if fine:
        found.refuse_plain("tokens")
        return
    with pytest.raises(OptionError, match=r"tokens are not sent to http://.*: use https"):
        found.refuse_plain("tokens")
