"""Options under every name that users know them by."""

from __future__ import annotations

import base64
import inspect
import traceback
import warnings
from hashlib import sha256
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asynccommit.errors import OptionError
from asynccommit.options.job import OptionWarning
from asynccommit.stores.base import Ramp
from asynccommit.stores.gcs.credentials import GcsAnonymous
from asynccommit.stores.gcs.options import (
    KNOWN,
    NAMES,
    GcsSettings,
    encryption_headers,
    kms_key_name,
    read_settings,
)
from asynccommit.stores.http.base import HttpSettings
from asynccommit.stores.urls import parse_url
from tests.support.google import authorized_user, pem, service_account

ANON = {"token": "anon"}
EMULATOR = "STORAGE_EMULATOR_HOST"
KEY = base64.b64encode(bytes(range(32))).decode()
TOKEN = "ya29.hunter3"
KMS = "projects/p/locations/l/keyRings/r/cryptoKeys/k"
USER = authorized_user("https://oauth2.googleapis.com/token")


def settings(
    options: dict[str, Any] | None = None,
    environ: dict[str, str] | None = None,
    url: str = "gs://data/t",
) -> GcsSettings:
    """Read options and environment."""
    return read_settings(
        parse_url(url), options or {}, environ=environ or {}, now=lambda: 1_700_000_000.0
    )


def of_hadoop(**options: str) -> GcsSettings:
    """Read options of Hadoop: ``a__b`` is ``fs.gs.a.b``, as Spark has it."""
    named = {f"spark.hadoop.fs.gs.{k.replace('__', '.')}": v for k, v in options.items()}
    return settings({**ANON, **named})


# --- what is read ----------------------------------------------------------------------------


def test_without_options_all_is_as_the_service_takes_it() -> None:
    """The machine's credentials, detection of folders, moves."""
    found = settings()

    assert found.place.origin == "https://storage.googleapis.com"
    assert found.http == HttpSettings(connections=256)
    assert (found.hierarchical, found.move, found.library) == (None, True, None)
    assert (found.workers, found.batch, found.page) == (256, 100, 1000)
    assert (found.chunk, found.rewrite_chunk) == (8 << 20, 0)
    assert (found.user_project, found.kms_key_name) == ("", "")
    assert (found.write_headers, found.source_headers, found.headers) == ({}, {}, {})


def test_how_requests_are_sent_is_read() -> None:
    """Times, connections and the library that sends."""
    found = settings(
        {
            **ANON,
            "requests_timeout": "30",
            "connection_timeout": 2,
            "read_timeout": 5.5,
            "max_concurrency": "300",
            "proxy": "http://proxy:3128",
            "ca_file": "/etc/ca.pem",
            "http_library": "aiohttp",
        }
    )

    http = found.http
    assert (http.total_timeout, http.connect_timeout, http.read_timeout) == (30.0, 2.0, 5.5)
    assert (http.connections, found.workers, found.library) == (300, 300, "aiohttp")
    assert (http.proxy, http.ca_file) == ("http://proxy:3128", "/etc/ca.pem")


def test_how_hadoop_sends_requests_is_read() -> None:
    """In its units; options of ours count before it."""
    conf = {
        "http__connect-timeout": "7s",
        "http__read-timeout": "9000",
        "proxy__address": "proxy:3128",
        "application__name__suffix": "nightly/7",
        "storage__http__headers__X-Custom": "value",
        "storage__root__url": "http://127.0.0.1:4443/",
        "storage__service__path": "storage/v2/",
    }
    found = of_hadoop(**conf)

    assert (found.http.connect_timeout, found.http.read_timeout) == (7.0, 9.0)
    assert found.http.proxy == "http://proxy:3128"
    assert found.http.user_agent.endswith(" nightly/7")
    assert found.headers == {"x-custom": "value"}
    assert found.place.origin + found.place.objects == "http://127.0.0.1:4443/storage/v2/b/data/o"
    ours = {"connection_timeout": 3, "proxy": "", "endpoint_url": "http://127.0.0.1:1"}
    keys = {f"fs.gs.{name.replace('__', '.')}": value for name, value in conf.items()}
    found = settings({**ANON, **keys, **ours})
    assert (found.http.connect_timeout, found.http.proxy) == (3.0, "")
    assert found.place.origin == "http://127.0.0.1:1"


@pytest.mark.parametrize(
    "options, sizes",
    [
        ({"chunk": 1}, (1 << 18, 0)),
        ({"chunk": (1 << 18) + 1}, (1 << 19, 0)),
        ({"fs.gs.outputstream.upload.chunk.size": "24m"}, (24 << 20, 0)),
        ({"fs.gs.outputstream.upload.chunk.size": "24m", "chunk": 1 << 20}, (1 << 20, 0)),
        ({"fs.gs.rewrite.max.chunk.size": "512m"}, (8 << 20, 512 << 20)),
        ({"fs.gs.rewrite.max.chunk.size": "1"}, (8 << 20, 1 << 20)),
    ],
)
def test_pieces_are_whole_units_of_the_service(
    options: dict[str, Any], sizes: tuple[int, int]
) -> None:
    """Quarters of a megabyte for uploads, whole ones for rewrites."""
    found = settings({**ANON, **options})

    assert (found.chunk, found.rewrite_chunk) == sizes


@pytest.mark.parametrize(
    "options, batch, page",
    [
        ({"max__requests__per__batch": "15"}, 15, 1000),
        ({"max__requests__per__batch": "1000"}, 100, 1000),
        ({"list__max__items__per__call": "10"}, 100, 10),
        ({"list__max__items__per__call": "100000"}, 100, 5000),
    ],
)
def test_batches_and_pages_are_as_large_as_the_service_takes(
    options: dict[str, str], batch: int, page: int
) -> None:
    """And as small as is said."""
    found = of_hadoop(**options)

    assert (found.batch, found.page) == (batch, page)


@pytest.mark.parametrize(
    "options, hierarchical",
    [
        ({}, None),
        ({"hns": True}, True),
        ({"hns": "false"}, False),
        ({"fs.gs.hierarchical.namespace.folders.enable": "true"}, None),
        ({"fs.gs.hierarchical.namespace.folders.enable": "false"}, None),
        ({"fs.gs.hierarchical.namespace.folders.enable": "false", "hns": True}, True),
    ],
)
def test_folders_may_be_said(options: dict[str, Any], hierarchical: bool | None) -> None:
    """Then the service is not asked; Hadoop's key is about Hadoop's client."""
    assert settings({**ANON, **options}).hierarchical is hierarchical


@pytest.mark.parametrize(
    "options, move",
    [
        ({"move": False}, False),
        ({"move": "1"}, True),
        ({"fs.gs.operation.move.enable": "false"}, False),
        ({"fs.gs.operation.move.enable": "true"}, True),
        ({"fs.gs.operation.move.enable": "false", "move": True}, True),
    ],
)
def test_moves_may_be_switched_off(options: dict[str, Any], move: bool) -> None:
    """By either name."""
    assert settings({**ANON, **options}).move is move


# --- the ramp --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, flat, folders",
    [
        ({}, (5000, 1000), (40_000, 8000)),
        ({"ramp": True}, (5000, 1000), (40_000, 8000)),
        ({"ramp": "false"}, None, None),
        ({"ramp": 2000}, (10_000, 2000), (10_000, 2000)),
        ({"ramp": "2000", "reads": 500}, (500, 2000), (500, 2000)),
        ({"writes": 300}, (5000, 300), (40_000, 300)),
        ({"reads": 300, "ramp": True}, (300, 1000), (300, 8000)),
        ({"endpoint_url": "http://127.0.0.1:1"}, None, None),
        ({"endpoint_url": "http://127.0.0.1:1", "ramp": True}, (5000, 1000), (40_000, 8000)),
        ({"endpoint_url": "http://127.0.0.1:1", "writes": 7}, (5000, 7), (40_000, 7)),
    ],
)
def test_rates_begin_as_buckets_do(
    options: dict[str, Any], flat: tuple[float, float] | None, folders: tuple[float, float] | None
) -> None:
    """Google's double within twenty minutes, eight times as much with folders; others need none."""
    found = settings({**ANON, **options})
    expected = [None if rates is None else Ramp(*rates, 1200.0) for rates in (flat, folders)]

    assert [found.ramp_for(False), found.ramp_for(True)] == expected


# --- who pays, and keys ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, environ, payer",
    [
        ({}, {}, ""),
        ({"project": "mine"}, {}, ""),
        ({"requester_pays": False, "project": "mine"}, {}, ""),
        ({"requester_pays": "false"}, {}, ""),
        ({"requester_pays": "payer", "project": "mine"}, {}, "payer"),
        ({"requester_pays": "example.com:payer"}, {}, "example.com:payer"),
        ({"requester_pays": True, "project": "mine"}, {}, "mine"),
        ({"requester_pays": "true"}, {"GOOGLE_CLOUD_PROJECT": "around"}, "around"),
        ({"requester_pays": True}, {"GCLOUD_PROJECT": "old"}, "old"),
        ({"requester_pays": True}, {"GCSFS_DEFAULT_PROJECT": "gcsfs"}, "gcsfs"),
        ({"requester_pays": True, "fs.gs.project.id": "conf"}, {"GCLOUD_PROJECT": "old"}, "conf"),
        ({"fs.gs.requester.pays.mode": "ENABLED", "fs.gs.project.id": "conf"}, {}, "conf"),
        (
            {"fs.gs.requester.pays.mode": "ENABLED", "fs.gs.requester.pays.project.id": "payer"},
            {},
            "payer",
        ),
        ({"fs.gs.requester.pays.mode": "ENABLED", "requester_pays": False}, {}, ""),
        (
            {"fs.gs.requester.pays.mode": "CUSTOM", "fs.gs.requester.pays.buckets": "other"},
            {},
            "",
        ),
    ],
)
def test_who_pays_is_read(options: dict[str, Any], environ: dict[str, str], payer: str) -> None:
    """Nobody, unless it is said; then the project that is named, or else the job's."""
    assert settings({**ANON, **options}, environ).user_project == payer


def test_a_key_of_the_customers_is_sent_with_its_hash() -> None:
    """By our name and by Hadoop's."""
    ours = settings({**ANON, "encryption_key": KEY})
    theirs = of_hadoop(encryption__key=KEY, encryption__algorithm="AES256")

    assert ours.write_headers["x-goog-encryption-key"] == KEY
    assert ours.source_headers["x-goog-copy-source-encryption-key"] == KEY
    assert ours.write_headers == theirs.write_headers
    assert settings({**ANON, "encryption_key": bytes(range(32))}).write_headers == (
        ours.write_headers
    )


def test_a_key_of_cloud_kms_is_named() -> None:
    """By its path."""
    assert settings({**ANON, "kms_key_name": KMS}).kms_key_name == KMS


# --- names -----------------------------------------------------------------------------------


def test_every_option_of_gcsfs_is_known() -> None:
    """Whatever its constructor takes; those of fsspec about listings and loops too."""
    names = set(inspect.signature(import_module("gcsfs.core").GCSFileSystem.__init__).parameters)
    ours = KNOWN | NAMES.passed_over | set(NAMES.no_effect)

    assert names - {"self", "args", "kwargs"} <= ours


def test_what_is_about_other_things_is_passed_over() -> None:
    """Storage options that work with gcsfs work here."""
    options = {
        "project": "p-1",
        "access": "read_write",
        "token": "anon",
        "block_size": 1 << 20,
        "consistency": "none",
        "cache_timeout": 0,
        "secure_serialize": True,
        "check_connection": None,
        "asynchronous": True,
        "session_kwargs": {},
        "loop": None,
        "timeout": None,
        "default_location": "EU",
        "version_aware": False,
        "use_listings_cache": False,
        "skip_instance_cache": True,
        "fs.gs.inputstream.fadvise": "AUTO",
        "spark.hadoop.fs.azure.account.key": "k",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(settings(options).credential, GcsAnonymous)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"consistency": "md5"}, "consistency has no effect here: the service checks"),
        ({"version_aware": True}, "version_aware has no effect here: only the live version"),
        ({"session_kwargs": {"trust_env": True}}, "session_kwargs has no effect here: use proxy"),
        ({"batch_size": 20}, "batch_size has no effect here"),
    ],
)
def test_what_is_in_vain_warns(options: dict[str, Any], message: str) -> None:
    """Whoever says it expects something of it."""
    with pytest.warns(OptionWarning, match=message):
        settings({**ANON, **options})


@pytest.mark.parametrize(
    "options, message",
    [
        ({"tokn": "hunter2"}, "no option 'tokn' of a store on Google Cloud Storage: did you mean"),
        ({"requestor_pays": True}, "did you mean requester_pays"),
        ({"TOKEN": "hunter2"}, "did you mean token"),
        ({"anon": True}, "use token='anon'"),
        ({"credentials": "hunter2"}, "'credentials' .*: use token"),
        ({"account_name": "acct"}, "is this a gs:// URL"),
        ({"region": "west"}, "known options: access, ca_file"),
        ({"timeout": "soon"}, "timeout is 'soon'"),
        ({"requests_timeout": 0}, "requests_timeout is 0"),
        ({"read_timeout": float("nan")}, "read_timeout is nan"),
        ({"connection_timeout": [1]}, "connection_timeout is "),
        ({"max_concurrency": 0}, "max_concurrency is 0"),
        ({"chunk": "large"}, "chunk is 'large'"),
        ({"hns": "perhaps"}, "hns is 'perhaps'"),
        ({"move": "perhaps"}, "move is 'perhaps'"),
        ({"ramp": "perhaps"}, "ramp is 'perhaps'"),
        ({"ramp": -1}, "ramp is -1"),
        ({"reads": 0}, "reads is 0"),
        ({"ramp": 2000, "writes": 5}, "ramp and writes both set a rate"),
        ({"ramp": False, "writes": 5}, "but ramp is false"),
        ({"access": "all"}, "access is 'all'"),
        ({"requester_pays": True}, "no project is named"),
        ({"requester_pays": "No Project"}, "'No Project' is not a project id"),
        ({"requester_pays": True, "project": "a&b"}, "'a&b' is not a project id"),
        ({"encryption_key": "hunter2"}, "encryption_key is not 32 bytes"),
        ({"fs.gs.encryption.key": "hunter2"}, "fs.gs.encryption.key is not 32 bytes"),
        ({"encryption_key": KEY, "kms_key_name": KMS}, "set only one of them"),
        ({"kms_key_name": "k"}, "kms_key_name is 'k'"),
        (
            {"encryption_key": KEY, "endpoint_url": "http://emulator:1"},
            "encryption keys are not sent",
        ),
        ({"endpoint_url": "storage.googleapis.com"}, "endpoint_url is not the URL"),
        ({"fs.gs.storage.root.url": "h"}, "fs.gs.storage.root.url is not the URL"),
        ({"fs.gs.storage.http.headers.Authorization": "hunter2"}, "cannot be set by options"),
        ({"fs.gs.storage.http.headers.a b": "hunter2"}, "is not a header"),
        ({"fs.gs.storage.http.headers.a": "hunter2\r\nx: y"}, "is not a header"),
        ({"fs.gs.application.name.suffix": "a\nb"}, "suffix is"),
        ({"fs.gs.operation.move.enable": "perhaps"}, "expected true or false"),
        ({"fs.gs.max.requests.per.batch": "0"}, "expected a whole number"),
    ],
)
def test_a_wrong_option_is_named_and_no_secret(options: dict[str, Any], message: str) -> None:
    """The error is about the option, says what to do, and repeats no credential."""
    with pytest.raises(OptionError, match=message) as caught:
        settings({"token": TOKEN, **options})
    text = "".join(traceback.format_exception(caught.value, chain=True)) + repr(caught.value)
    for secret in ("hunter2", "hunter3", KEY):
        assert secret not in text.replace(f'"{secret}"', "")


@given(
    st.dictionaries(
        st.sampled_from(sorted(KNOWN)),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        max_size=4,
    )
)
def test_whatever_is_given_is_read_or_refused(options: dict[str, Any]) -> None:
    """No value of an option leads to another error."""
    try:
        found = settings(options)
    except OptionError:
        return
    assert isinstance(found, GcsSettings)


@pytest.mark.parametrize(
    "options",
    [
        {"token": USER},
        {"token": "ya29.hunter2"},
        {"token": service_account("https://oauth2.googleapis.com/token")},
        {"token": "anon", "encryption_key": KEY},
        {"token": "anon", "proxy": "http://me:hunter2@proxy"},
        {"token": "anon", "fs.gs.storage.http.headers.X-Key": "hunter2"},
        {"fs.gs.auth.client.id": "c", "fs.gs.auth.client.secret": "hunter2",
         "fs.gs.auth.refresh.token": "hunter2"},
        {"token": "anon", "fs.gs.proxy.address": "proxy:1", "fs.gs.proxy.username": "me",
         "fs.gs.proxy.password": "hunter2"},
    ],
)  # fmt: skip
def test_no_repr_shows_a_secret(options: dict[str, Any]) -> None:
    """Settings may be logged."""
    shown = repr(settings(options))

    assert not any(secret in shown for secret in ("hunter", KEY, pem()[100:160]))


def test_an_emulator_is_found_in_the_environment() -> None:
    """And asked by nobody in particular, with as little said as possible."""
    found = settings(environ={EMULATOR: "localhost:4443"}, url="gcs://data/t")

    assert found.place.origin == "http://localhost:4443"
    assert isinstance(found.credential, GcsAnonymous)
    assert found.ramp_for(False) is None


RAW = bytes(range(32))
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
        (KEY, KEY, "", "does not match encryption_key.hash"),
        (KEY, "", "AES128", "the encryption algorithm is 'AES128': expected AES256"),
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
    with pytest.raises(OptionError, match=r"kms_key_name is .*: expected projects/PROJECT"):
        kms_key_name(name)
