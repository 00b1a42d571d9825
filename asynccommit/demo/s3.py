"""Run the demo on S3: moto behind a slow proxy with faults.

Spark's tasks upload through Hadoop's magic committer. The uploads are completed first by Hadoop,
with the classes that Spark has for that, and then by this package. A third run on one week of
flights shows what Spark does without these classes: it copies files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from asynccommit.demo import flights
from asynccommit.demo.buckets import Bucket, BucketOutcome, BucketStore, run_on_bucket
from asynccommit.demo.emulated import RunningEmulator, serving
from asynccommit.demo.flights import Say
from asynccommit.demo.hadoop_jars import (
    Dependency,
    cached_jar,
    cached_jars,
    hadoop_version,
    spark_conf,
)
from asynccommit.demo.moto import Moto, need_moto, serving_moto
from asynccommit.demo.outcome import StoreBehaviour
from asynccommit.errors import UnsupportedError
from asynccommit.spark.clients import S3A_SDKS, SDK, SDK_PARTS

BUCKET = "flights"
S3_MONTHS = (1,)
"""The default months: moto handles a few hundred requests per second."""

S3_WEATHER = StoreBehaviour(latency="5ms", limit=3500, lost="5%")
_COMPLETE = "complete_upload"

# Maven's repository had no version for Spark 4.2 or 4.3 when this was written; 4.3 accepts this
# one.
_CLOUD = "4.1.1"
_CLOUD_SHA256 = "e5b41b43d481510afd0cdc372b593770ddee5a0a348d0744cef6c6cd77a27943"
_CLOUD_CLASSES = "org.apache.spark.internal.io.cloud"

# Spark already has these; a second version would conflict.
_SPARKS = ("org.slf4j", "io.netty", "commons-codec", "commons-logging", "org.apache.httpcomponents")

S3 = BucketStore(
    root=f"s3a://{BUCKET}",
    through="S3A",
    whose="Hadoop",
    committer="Hadoop's magic committer",
    conf={
        "spark.sql.sources.commitProtocolClass": f"{_CLOUD_CLASSES}.PathOutputCommitProtocol",
        "spark.sql.parquet.output.committer.class": (
            f"{_CLOUD_CLASSES}.BindingParquetOutputCommitter"
        ),
    },
    op=_COMPLETE,
    noun="completion",
    recovered=_COMPLETE,
    resent=False,
    visible="uploads completed",
    refused="503",
    done=lambda stats: stats["forwarded"].get(_COMPLETE, 0),
    # So many simultaneous completions would end before their driver could be killed. Some are
    # delayed, and arrive after the job has been finished.
    hold=({"kind": "late", "op": _COMPLETE, "every": 3, "delay": 30, "reply": "never"},),
    share=3,
    groups={},
    trial="Hadoop's committer and lost responses",
    nothing_left="nothing of a job",
    copies=True,
)


def run_on_s3(
    keep: Path | None = None,
    *,
    months: Sequence[int] = S3_MONTHS,
    weather: StoreBehaviour = S3_WEATHER,
    say: Say = print,
) -> BucketOutcome:
    """Write the flights to moto with both committers and compare.

    Args:
        keep: directory for the logs, new or empty; ``demo-out`` by default.
        months: months to write.
        weather: behaviour of the emulated store; responses are lost only during this package's
            commits.
        say: called with progress messages.

    Raises:
        UnsupportedError: a required package is not installed; the message says what to install.
        OptionError: the directory is not empty.
        AsyncCommitError: Spark, moto or the proxy failed; the message says where the log is.
    """
    source = flights.find_flights()
    need_moto()
    jars = [*client_jars(), committers_jar()]
    with (
        flights.ground(source, keep, months) as ground,
        emulated(weather, ground.directory) as (moto, proxy),
    ):
        say(f"moto is behind {proxy.endpoint}: {weather.latency} a response, or more")
        bucket = Bucket(proxy, partial(moto.objects, BUCKET), partial(moto.uploads, BUCKET))
        buffer = {"fs.s3a.buffer.dir": str(ground.scratch / "buffer")}
        hadoop = {**client_conf(proxy.endpoint), "fs.s3a.committer.name": "magic", **buffer}
        conf = spark_conf(jars, hadoop)
        return run_on_bucket(S3, bucket, ground, conf, month=months[0], weather=weather, say=say)


@contextmanager
def emulated(weather: StoreBehaviour, directory: Path) -> Iterator[tuple[Moto, RunningEmulator]]:
    """Run moto with the bucket, and the proxy; neither keeps files.

    Raises ``AsyncCommitError`` if one of them does not start.
    """
    with serving_moto(directory / "moto.log") as moto:
        moto.make_bucket(BUCKET)
        arguments = ["--target", moto.url, "--latency", weather.latency]
        arguments += ["--limit", str(weather.limit)]
        with serving("s3-proxy", arguments, directory / "proxy.log") as proxy:
            yield moto, proxy


def client_jars() -> Sequence[Path]:
    """Return the ``hadoop-aws`` and SDK jars, fetched if not in the cache.

    Raises ``UnsupportedError`` that says what is missing.
    """
    hadoop = hadoop_version()
    if hadoop not in S3A_SDKS:
        known = ", ".join(S3A_SDKS)
        raise UnsupportedError(f"the SDK for Hadoop {hadoop} is unknown; known versions: {known}")
    client = Dependency("org.apache.hadoop", "hadoop-aws", hadoop, without=((SDK, "bundle"),))
    parts = [Dependency(SDK, part, S3A_SDKS[hadoop]) for part in SDK_PARTS]
    return cached_jars(f"hadoop-aws-{hadoop}", [client, *parts], without_groups=_SPARKS)


def client_conf(endpoint: str) -> Mapping[str, str]:
    """Return Hadoop's options for a test server at ``http://HOST:PORT``."""
    return {
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": "test",
        "fs.s3a.secret.key": "test",
    }


def committers_jar() -> Path:
    """Return the jar that connects Spark to S3A's committers.

    Raises ``UnsupportedError`` that says what is missing.
    """
    name = "spark-hadoop-cloud_2.13"
    artifact = f"org.apache.spark:{name}:{_CLOUD}"
    return cached_jar(artifact, f"{name}-{_CLOUD}.jar", _CLOUD_SHA256)
