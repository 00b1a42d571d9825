"""Run the demo on an emulated Google bucket with faults.

Spark's tasks write ``gs://`` through Google's connector. The job is committed first by Spark's
default committer, which renames directories and so sends many requests on this store; then by this
package.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from asynccommit.demo import flights
from asynccommit.demo.buckets import Bucket, BucketOutcome, BucketStore, run_on_bucket
from asynccommit.demo.emulated import RunningEmulator, serving
from asynccommit.demo.flights import Say
from asynccommit.demo.hadoop_jars import cached_jar, spark_conf
from asynccommit.demo.outcome import StoreBehaviour
from asynccommit.testing.emulators.gcs.emulator import client_conf

BUCKET = "flights"
MONTHS = (1, 2)
"""The default months: Spark's own commit of a year takes minutes."""

GCS_WEATHER = StoreBehaviour(latency="10ms", limit=300, lost="2%")

# The variant that contains all its dependencies, relocated. Since 3.5 Hadoop has its own client,
# ``hadoop-gcp``, which supports Google's endpoint only.
VERSION = "4.0.4"
_ARTIFACT = f"com.google.cloud.bigdataoss:gcs-connector:{VERSION}:jar:shaded"
_NAME = f"gcs-connector-{VERSION}-shaded.jar"
_SHA256 = "dfb5832738686436e597026a8e4bab01aa22e75ebfb15d37d096981f6599d73c"


def _moves_done(stats: Mapping[str, Any]) -> int:
    """Return approximately how many moves the emulator has accepted."""
    moved: int = stats["requests"].get("move", 0) - stats["statuses"].get("429", 0)
    return moved


GCS = BucketStore(
    root=f"gs://{BUCKET}",
    through="Google's connector",
    whose="Spark",
    committer="Spark's own committer",
    conf={},
    op="move",
    noun="move",
    recovered="rename",
    resent=True,
    visible="files moved",
    refused="429",
    done=_moves_done,
    hold=(),
    share=2,
    groups={"moves and copies": ("move", "rewrite")},
    trial="Spark's committer and a lost response",
    nothing_left="no _temporary",
    copies=False,
)


def run_on_gcs(
    keep: Path | None = None,
    *,
    months: Sequence[int] = MONTHS,
    weather: StoreBehaviour = GCS_WEATHER,
    hns: bool = False,
    say: Say = print,
) -> BucketOutcome:
    """Write the flights to an emulated bucket with both committers; compare.

    Args:
        keep: directory for the logs, new or empty; ``demo-out`` by default.
        months: months to write.
        weather: behaviour of the emulated store; responses are lost only during this package's
            commits.
        hns: whether the bucket has a hierarchical namespace.
        say: called with progress messages.

    Raises:
        UnsupportedError: a required package is not installed; the message says what to install.
        OptionError: the directory is not empty.
        AsyncCommitError: Spark or the emulator failed; the message says where the log is.
    """
    source = flights.find_flights()
    jar = client_jar()
    with (
        flights.ground(source, keep, months) as ground,
        emulated(weather, hns, ground.directory) as emulator,
    ):
        say(
            f"an emulator serves {emulator.endpoint}: {weather.latency} a response, "
            f"{weather.limit:,} writes/s at most"
        )
        bucket = Bucket(emulator, lambda prefix: _objects(emulator, prefix))
        conf = spark_conf([jar], client_conf(emulator.endpoint))
        return run_on_bucket(GCS, bucket, ground, conf, month=months[0], weather=weather, say=say)


@contextmanager
def emulated(weather: StoreBehaviour, hns: bool, directory: Path) -> Iterator[RunningEmulator]:
    """Run an emulator with the bucket.

    Raises ``AsyncCommitError`` if it does not start.
    """
    quotas = {"writes": weather.limit, "name_interval": 1.0}
    config = directory / "emulator.json"
    config.write_text(json.dumps({"buckets": {BUCKET: {"hns": hns, "quotas": quotas}}}))
    arguments = ["--config", str(config), "--latency", weather.latency]
    with serving("gcs", arguments, directory / "emulator.log") as emulator:
        yield emulator


def client_jar() -> Path:
    """Return the jar of Google's Hadoop connector, fetched if needed.

    Raises ``UnsupportedError`` that says what is missing.
    """
    return cached_jar(_ARTIFACT, _NAME, _SHA256)


def _objects(emulator: RunningEmulator, prefix: str) -> Mapping[str, str]:
    """Return the generation of each object, by name."""
    found: dict[str, str] = {}
    token = ""
    while True:
        query = f"prefix={prefix}&fields=items(name,generation),nextPageToken{token}"
        page = emulator.ask(f"/storage/v1/b/{BUCKET}/o?{query}")
        found.update((item["name"], item["generation"]) for item in page.get("items", ()))
        if "nextPageToken" not in page:
            return found
        token = f"&pageToken={page['nextPageToken']}"
