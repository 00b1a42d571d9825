"""Options under every name that users know them by, and which of several credentials counts."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from asynccommit.errors import OptionError
from asynccommit.options.job import OptionWarning
from asynccommit.runtime.host import this_host
from asynccommit.stores.s3.options import KNOWN, S3Settings, read_settings
from asynccommit.stores.urls import parse_url

HERE = {"endpoint_url": "http://127.0.0.1:1"}
ENVIRON = {"AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": "env-secret"}
HADOOP = {"fs.s3a.access.key": "HADOOP", "fs.s3a.secret.key": "hadoop-secret"}
PROVIDER = "fs.s3a.aws.credentials.provider"
SIMPLE = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"


def read(
    options: dict[str, Any] | None = None, environ: dict[str, str] | None = None
) -> S3Settings:
    """Return the settings that these options make."""
    address = parse_url("s3a://data/")
    return read_settings(
        address, {**HERE, **(options or {})}, environ=environ or {}, host=this_host()
    )


def who(options: dict[str, Any] | None = None, environ: dict[str, str] | None = None) -> str:
    """Return the id of the key that signs, or how one is found."""
    found = read(options, environ).credential
    if found.anonymous:
        return "nobody"
    return found.keys.access if found.keys else repr(found)


MACHINE = "OfMachine(Machine(None))"
IDENTITIES: dict[str, tuple[dict[str, Any], dict[str, str], str]] = {
    "nothing said": ({}, {}, MACHINE),
    "environment": ({}, ENVIRON, "ENV"),
    "half of it in the environment": ({}, {"AWS_ACCESS_KEY_ID": "ENV"}, MACHINE),
    "Hadoop before the environment": (HADOOP, ENVIRON, "HADOOP"),
    "s3fs before Hadoop": ({"key": "K", "secret": "s", **HADOOP}, ENVIRON, "K"),
    "the older names": ({"username": "U", "password": "s"}, {}, "U"),
    "botocore's names": (
        {"client_kwargs": {"aws_access_key_id": "C", "aws_secret_access_key": "s"}},
        ENVIRON,
        "C",
    ),
    "a profile before the environment": (
        {"profile": "work"},
        ENVIRON,
        "OfMachine(Machine('work'))",
    ),
    "anonymous": ({"anon": True, **HADOOP}, ENVIRON, "nobody"),
    "anonymous by botocore": ({"config_kwargs": {"signature_version": "unsigned"}}, {}, "nobody"),
    "anonymous by Hadoop": (
        {PROVIDER: "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"},
        ENVIRON,
        "nobody",
    ),
    "the machine by Hadoop": (
        {
            PROVIDER: "com.amazonaws.auth.InstanceProfileCredentialsProvider",
            **HADOOP,
        },
        {},
        MACHINE,
    ),
    "a list by Hadoop": (
        {
            PROVIDER: f"{SIMPLE},\n com.x.DefaultCredentialsProvider",
            **HADOOP,
        },
        {},
        "HADOOP",
    ),
    "any of a list by Hadoop": (
        {PROVIDER: f"com.x.EnvironmentVariableCredentialsProvider,{SIMPLE}", **HADOOP},
        ENVIRON,
        "HADOOP",
    ),
    "a list of what has nothing": (
        {PROVIDER: f"{SIMPLE},com.x.EnvironmentVariableCredentialsProvider"},
        ENVIRON,
        "ENV",
    ),
    "one bucket's own": (
        {**HADOOP, "fs.s3a.bucket.data.access.key": "MINE", "fs.s3a.bucket.x.access.key": "NO"},
        {},
        "MINE",
    ),
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_which_credential_counts(name: str) -> None:
    """Options, then the cluster's configuration, then the environment, then the machine."""
    options, environ, expected = IDENTITIES[name]

    assert who(options, environ) == expected


def test_a_session_has_its_token() -> None:
    """The token of a session comes with the keys of the same family."""
    given = {"key": "K", "secret": "s", "token": "t"}
    environ = {**ENVIRON, "AWS_SESSION_TOKEN": "e"}
    hadoop = {**HADOOP, "fs.s3a.session.token": "h"}
    keys = [read(told, environ).credential.keys for told in (given, hadoop, {})]

    assert [found.token for found in keys if found] == ["t", "h", "e"]


def settings(**options: Any) -> S3Settings:
    """Read options; ``a__b`` is ``fs.s3a.a.b``."""
    names = (
        (name, f"fs.s3a.{name.replace('__', '.')}" if "__" in name else name) for name in options
    )
    return read({new: options[old] for old, new in names})


def test_how_requests_are_sent() -> None:
    """Timeouts, connections, proxy and certificates, of s3fs, botocore and Hadoop."""
    ours = settings(requests_timeout=5, max_concurrency=7, proxy="http://p:1", ca_file="/ca").http
    theirs = settings(
        config_kwargs={"connect_timeout": 3, "read_timeout": "4", "max_pool_connections": 9},
        client_kwargs={"verify": "/other"},
    ).http
    hadoop = settings(
        connection__maximum="500",
        connection__timeout="200s",
        connection__establish__timeout="30000",
        proxy__host="proxy",
        proxy__port="8080",
        proxy__username="me@x",
        proxy__password="hunter2",
    ).http

    assert (ours.total_timeout, ours.connections, ours.proxy, ours.ca_file) == (
        5.0,
        7,
        "http://p:1",
        "/ca",
    )
    assert (theirs.connect_timeout, theirs.read_timeout, theirs.connections) == (3.0, 4.0, 9)
    assert theirs.ca_file == "/other"
    assert (hadoop.connections, hadoop.read_timeout, hadoop.connect_timeout) == (500, 200.0, 30.0)
    assert hadoop.proxy == "http://me%40x:hunter2@proxy:8080"
    assert "hunter2" not in repr(hadoop)
    # Hadoop's is of requests without data: a large part takes longer.
    assert settings(connection__request__timeout="60s").http.total_timeout == 900.0
    assert settings(connection__request__timeout="30m").http.total_timeout == 1800.0
    assert read({}, {"AWS_CA_BUNDLE": "/bundle"}).http.ca_file == "/bundle"


def test_what_requests_ask_for() -> None:
    """Page, deletes in one request, who pays, checksum: of ours and of Hadoop's."""
    plain = settings()
    hadoop = settings(
        paging__maximum="5000",
        bulk__delete__page__size="250",
        requester__pays__enabled="true",
        create__checksum__algorithm="CRC32C",
    )

    assert (plain.page, plain.bulk, plain.headers, plain.checksum) == (1000, 1000, {}, "CRC32")
    assert (hadoop.page, hadoop.bulk, hadoop.checksum) == (1000, 250, "CRC32C")
    assert hadoop.headers == {"x-amz-request-payer": "requester"}
    assert settings(multiobjectdelete__enable="false").bulk == 1
    assert settings(s3_additional_kwargs={"RequestPayer": "requester"}).headers
    assert settings(checksum="none").checksum == ""
    assert (
        settings(config_kwargs='{"request_checksum_calculation": "when_required"}').checksum == ""
    )
    assert read({}, {"AWS_REQUEST_CHECKSUM_CALCULATION": "WHEN_REQUIRED"}).checksum == ""


def test_deletes_depend_on_etags_only_where_that_is_known_to_count() -> None:
    """AWS looks at the etags of a batch; of another server one has to say so."""
    assert settings().conditions == "none"
    assert settings(conditional_delete="single").conditions == "single"
    address = parse_url("s3://data/")
    assert read_settings(address, {}, environ={}, host=this_host()).conditions == "batch"


def test_the_machine_is_asked_for_what_nobody_says() -> None:
    """Files are read for a region or an endpoint only where neither is said."""
    address, host = parse_url("s3://data/"), this_host()
    keys = {"key": "K", "secret": "s"}

    assert read(keys).machine is None
    assert read_settings(address, keys, environ={}, host=host).machine is not None
    known = read_settings(address, {**keys, "region": "eu-west-1"}, environ={}, host=host)
    assert known.machine is None
    # A profile may name an endpoint, wherever its region comes from.
    named = read_settings(address, {"profile": "p", "region": "eu-west-1"}, environ={}, host=host)
    assert named.machine is not None


def test_what_is_of_others_is_passed_over() -> None:
    """Options about opening files, and keys of other clouds, mean nothing here and are no fault."""
    told = {
        "default_block_size": 5,
        "use_listings_cache": False,
        "skip_instance_cache": True,
        "version_aware": False,
        "config_kwargs": {"retries": {"max_attempts": 3}, "tcp_keepalive": True},
        "client_kwargs": {"verify": True},
        "fs.azure.account.key": "k",
        "fs.gs.project.id": "p",
        "fs.s3a.committer.name": "magic",
        "fs.s3a.multipart.size": "64M",
        "fs.s3a.experimental.input.fadvise": "random",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(told)


@pytest.mark.parametrize(
    "told,said",
    [
        ({"fs.s3a.acces.key": "k"}, r"did you mean fs\.s3a\.access\.key\?"),
        ({"fs.s3a.security.credential.provider.path": "jceks://x"}, "no effect"),
        ({"fs.s3a.bucket.data.accesspoint.arn": "arn"}, "no effect"),
        ({"fs.s3a.delegation.token.binding": "x"}, "no effect"),
        ({"fs.s3a.custom.signers": "x"}, "no effect"),
        ({"fs.s3a.access.keys": "k"}, r"did you mean fs\.s3a\.access\.key\?"),
        ({"fs.s3a.bucket.data.secret.keyy": "k"}, r"did you mean fs\.s3a\.secret\.key\?"),
        ({"fs.s3a.assumed.role.arn": "arn"}, "set profile"),
        ({"fs.s3a.encryption.algo": "x"}, "no effect"),
        ({"version_aware": True}, "only the live version"),
        ({"client_kwargs": {"magic": 1}}, "client_kwargs.magic has no effect"),
    ],
)
def test_what_would_be_misunderstood_is_warned_of(told: dict[str, Any], said: str) -> None:
    """A name of a family that says who, where or by which key is never passed over in silence."""
    with pytest.warns(OptionWarning, match=said):
        read(told)


@pytest.mark.parametrize(
    "told,said",
    [
        ({"acces": "x"}, "acl"),
        ({"aws_access_key_id": "x"}, "use key"),
        ({"endpoint": "x"}, "use endpoint_url"),
        ({"nothing_like_it": 1}, "known options: acl"),
        ({"key": "K"}, "secret is missing"),
        ({"secret": "hunter2"}, "key is missing"),
        ({"token": "hunter2"}, "token is given without"),
        ({"fs.s3a.access.key": "K"}, "secret.key is missing"),
        ({PROVIDER: "com.acme.Vault"}, "a Hadoop class"),
        ({"anon": "perhaps"}, "true or false"),
        ({"client_kwargs": {"verify": False}}, "ca_file"),
        ({"client_kwargs": "region"}, "not a mapping"),
        ({"max_concurrency": 0}, "from 1 to 4,096"),
        ({"fs.s3a.connection.maximum": "many"}, "at least 1"),
        ({"fs.s3a.connection.timeout": "5 fortnights"}, "expected a duration such as 5s"),
        ({"fs.s3a.path.style.access": "yes"}, "true or false"),
        ({"conditional_delete": "often"}, "batch, single, none"),
        ({"checksum": "md4"}, "not a supported checksum"),
        ({"fs.s3a.proxy.host": "http://x"}, "not a host and a port"),
    ],
)
def test_what_cannot_be_read_is_refused(told: dict[str, Any], said: str) -> None:
    """The error names the option and what to say, and shows no secret."""
    with pytest.raises(OptionError, match=said) as caught:
        read(told)

    assert "hunter2" not in str(caught.value)


def test_settings_show_no_secret() -> None:
    """What is shown of settings has neither keys nor what encrypts."""
    key = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
    told = {"key": "AKIDX", "secret": "hunter2", "encryption": "SSE-C", "encryption_key": key}

    shown = repr(read(told))

    assert "hunter2" not in shown
    assert key not in shown


def test_every_option_is_read() -> None:
    """Each name that is said to have an effect is taken without a warning."""
    values = {
        **dict.fromkeys(("anon", "requester_pays", "use_ssl"), False),
        **dict.fromkeys(("use_fips_endpoint", "use_dualstack_endpoint", "conditional_put"), False),
        **dict.fromkeys(("conditional_replace", "rename"), False),
        **{name: {} for name in ("client_kwargs", "config_kwargs", "s3_additional_kwargs")},
        **dict.fromkeys(("requests_timeout", "timeout", "read_timeout", "connection_timeout"), 5),
        "max_concurrency": 5,
        "addressing_style": "path",
        "conditional_delete": "none",
        "checksum": "CRC32",
        "encryption": "SSE-KMS",
        "encryption_context": '{"a": "b"}',
        "endpoint_url": "https://h",
        "http_library": "aiohttp",
        "region": "eu-west-1",
        "acl": "private",
    }
    read({name: values.get(name, "text") for name in KNOWN})
