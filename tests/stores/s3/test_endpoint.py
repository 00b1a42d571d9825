"""Where requests go: region, style, endpoint, under whatever name they are given."""

from __future__ import annotations

from typing import Any

import pytest

from asynccommit.errors import OptionError
from asynccommit.runtime.host import this_host
from asynccommit.stores.s3.endpoint import S3Endpoint, Wanted, find_place
from asynccommit.stores.s3.options import read_settings
from asynccommit.stores.urls import Address, parse_url

KEYS = {"key": "AKID", "secret": "hunter2"}


def place(
    options: dict[str, Any] | None = None,
    environ: dict[str, str] | None = None,
    url: str = "s3://data-lake/",
) -> S3Endpoint:
    """Return where a store with these options sends its requests."""
    told = {**KEYS, **(options or {})}
    return read_settings(parse_url(url), told, environ=environ or {}, host=this_host()).place


def of(found: S3Endpoint) -> tuple[str, str, str]:
    """Return origin, path and region."""
    return found.origin, found.path, found.signed_for


CASES: dict[str, tuple[dict[str, Any], dict[str, str], tuple[str, str, str]]] = {
    "nothing said": ({}, {}, ("https://data-lake.s3.us-east-1.amazonaws.com", "", "us-east-1")),
    "region": (
        {"region": "eu-west-1"},
        {"AWS_REGION": "us-west-2"},
        ("https://data-lake.s3.eu-west-1.amazonaws.com", "", "eu-west-1"),
    ),
    "region of s3fs": (
        {"client_kwargs": {"region_name": "eu-west-1"}},
        {},
        ("https://data-lake.s3.eu-west-1.amazonaws.com", "", "eu-west-1"),
    ),
    "region of the environment": (
        {},
        {"AWS_DEFAULT_REGION": "cn-north-1"},
        ("https://data-lake.s3.cn-north-1.amazonaws.com.cn", "", "cn-north-1"),
    ),
    "path style on AWS": (
        {"addressing_style": "path", "region": "eu-west-1"},
        {},
        ("https://s3.eu-west-1.amazonaws.com", "/data-lake", "eu-west-1"),
    ),
    "endpoint": (
        {"endpoint_url": "http://localhost:9000/"},
        {},
        ("http://localhost:9000", "/data-lake", "us-east-1"),
    ),
    "endpoint with a path": (
        {"endpoint_url": "https://gate.example.com/s3/v1"},
        {},
        ("https://gate.example.com", "/s3/v1/data-lake", "us-east-1"),
    ),
    "endpoint with the port that is meant anyway": (
        {"endpoint_url": "https://gate.example.com:443"},
        {},
        ("https://gate.example.com", "/data-lake", "us-east-1"),
    ),
    "endpoint of virtual hosts": (
        {
            "client_kwargs": {"endpoint_url": "https://oss.example.com"},
            "addressing_style": "virtual",
        },
        {},
        ("https://data-lake.oss.example.com", "", "us-east-1"),
    ),
    "endpoint of Hadoop's, without a scheme": (
        {"fs.s3a.endpoint": "minio:9000", "fs.s3a.connection.ssl.enabled": "false"},
        {},
        ("http://minio:9000", "/data-lake", "us-east-1"),
    ),
    "AWS's endpoint of Hadoop's": (
        {"spark.hadoop.fs.s3a.endpoint": "s3.eu-central-1.amazonaws.com"},
        {},
        ("https://data-lake.s3.eu-central-1.amazonaws.com", "", "eu-central-1"),
    ),
    "AWS's endpoint for all": (
        {"fs.s3a.endpoint": "s3.amazonaws.com", "fs.s3a.endpoint.region": "eu-west-3"},
        {},
        ("https://data-lake.s3.eu-west-3.amazonaws.com", "", "eu-west-3"),
    ),
    "one bucket's own": (
        {
            "fs.s3a.endpoint": "http://other:1",
            "fs.s3a.bucket.data-lake.endpoint": "http://mine:2",
            "fs.s3a.bucket.else.endpoint": "http://else:3",
        },
        {},
        ("http://mine:2", "/data-lake", "us-east-1"),
    ),
    "endpoint of the environment": (
        {},
        {"AWS_ENDPOINT_URL": "http://a:1", "AWS_ENDPOINT_URL_S3": "http://b:2"},
        ("http://b:2", "/data-lake", "us-east-1"),
    ),
    "endpoint of the environment, which is not to count": (
        {},
        {"AWS_ENDPOINT_URL": "http://a:1", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"},
        ("https://data-lake.s3.us-east-1.amazonaws.com", "", "us-east-1"),
    ),
    "FIPS and both generations of addresses": (
        {"config_kwargs": {"use_fips_endpoint": True, "use_dualstack_endpoint": True}},
        {},
        ("https://data-lake.s3-fips.dualstack.us-east-1.amazonaws.com", "", "us-east-1"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_where_requests_go(name: str) -> None:
    """Options count before the environment, and each family's names are understood."""
    options, environ, expected = CASES[name]

    assert of(place(options, environ)) == expected


def test_a_dot_in_the_name_goes_into_the_path() -> None:
    """The certificate of AWS's hosts covers no name with a dot."""
    assert of(place(url="s3a://logs.example.com/x"))[:2] == (
        "https://s3.us-east-1.amazonaws.com",
        "/logs.example.com",
    )


def test_who_shares_a_limit() -> None:
    """A bucket has one limit on requests, on AWS whatever the region, elsewhere of that server."""
    assert place({"region": "eu-west-1"}).limit == place().limit == "s3://data-lake"
    assert place({"endpoint_url": "http://h:1"}).limit == "s3://data-lake@h:1"


@pytest.mark.parametrize(
    "options,url,said",
    [
        ({}, "s3:///x", "names no bucket"),
        ({}, "s3://ab/x", "not the name of a bucket"),
        ({"region": "eu-west-1/evil"}, "s3://data/", "not the name of a region"),
        ({"endpoint_url": "ftp://h"}, "s3://data/", "not the URL of a service"),
        ({"endpoint_url": "http://user:hunter2@h"}, "s3://data/", "not the URL of a service"),
        ({"endpoint_url": "http://h/../x"}, "s3://data/", "not the URL of a service"),
        ({"addressing_style": "host"}, "s3://data/", "path, virtual or auto"),
        ({"token": "t", "endpoint_url": "http://far.example.com"}, "s3://data/", "use https"),
    ],
)
def test_what_can_be_no_place(options: dict[str, Any], url: str, said: str) -> None:
    """The error says what is wrong and never repeats what may be a secret."""
    with pytest.raises(OptionError, match=said) as caught:
        place(options, url=url)

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("authority", ["AKID:hunter2@data", "AKID:hunter2", "hunter2@data"])
def test_keys_in_place_of_a_bucket_are_not_repeated(authority: str) -> None:
    """Hadoop once took keys from URLs; the error says where they belong, and shows nothing."""
    with pytest.raises(OptionError, match="set key and secret") as caught:
        find_place(Address("s3a", authority, "/"), Wanted())

    assert "hunter2" not in str(caught.value)


EXPRESS = "s3://flights--use1-az4--x-s3/t"


@pytest.mark.parametrize(
    "told, server",
    [
        ({"region": "us-east-1"}, "s3express-use1-az4.us-east-1.amazonaws.com"),
        (
            {"region": "us-east-1", "use_fips_endpoint": True, "use_dualstack_endpoint": True},
            "s3express-fips-use1-az4.dualstack.us-east-1.amazonaws.com",
        ),
        (
            {"endpoint_url": "https://s3express-use1-az4.us-east-1.amazonaws.com"},
            "s3express-use1-az4.us-east-1.amazonaws.com",
        ),
        ({"endpoint_url": "https://s3.example.com:8443"}, "s3.example.com:8443"),
    ],
)
def test_a_directory_bucket_is_named_by_the_host_of_its_zone(
    told: dict[str, Any], server: str
) -> None:
    """The host is that of botocore's rules, and of another endpoint if one is configured."""
    found = place(told, url=EXPRESS)
    assert found.server == f"flights--use1-az4--x-s3.{server}"
    assert (found.zone, found.service) == ("use1-az4", "s3express")


def test_a_directory_bucket_on_an_address_is_named_by_the_path() -> None:
    """No name can be prepended to an address; the clients of AWS do the same."""
    found = place({"endpoint_url": "http://127.0.0.1:9000"}, url=EXPRESS)
    assert (found.server, found.path) == ("127.0.0.1:9000", "/flights--use1-az4--x-s3")


@pytest.mark.parametrize(
    "bucket, said",
    [("flights--use1-az4--xa-s3", "access point"), ("flights--x-s3", "NAME--ZONE--x-s3")],
)
def test_names_that_are_like_directory_buckets_are_refused(bucket: str, said: str) -> None:
    """An access point, and a name without its zone."""
    with pytest.raises(OptionError, match=said):
        place({}, url=f"s3://{bucket}/t")
    assert place({}, url=f"s3://{bucket}0/t").bucket == f"{bucket}0"
