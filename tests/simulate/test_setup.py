"""What a user may say of a simulation, and how they are told what they may not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asynccommit.errors import OptionError
from asynccommit.options.job import Options
from asynccommit.simulate.setup import KINDS, Setup, read_setup
from asynccommit.stores.adls import options
from asynccommit.stores.gcs import options as gcs_options
from asynccommit.stores.hdfs import options as hdfs_options
from asynccommit.stores.prices import LIST_PRICES, Prices
from asynccommit.testing.models.fault_profiles import CLIMATES
from asynccommit.testing.models.fault_rules import Climate
from asynccommit.testing.models.latency import Latency, RequestLimit


def test_nothing_said_is_the_default() -> None:
    """Without options it is the setup that has none."""
    assert read_setup({}) == Setup()


def test_numbers_may_have_underscores() -> None:
    """Large numbers can be written so that they can be read, with underscores or a unit."""
    setup = read_setup({"files": "10M", "tasks": "50_000", "limit": "40k", "partitions": "1_000"})

    assert (setup.files, setup.tasks, setup.partitions) == (10_000_000, 50_000, 1_000)
    assert setup.climate.limit == RequestLimit(40_000, 4_000)


def test_tasks_and_partitions_follow_the_files() -> None:
    """A small job has few tasks and no partition without a file."""
    small, large = read_setup({"files": "30"}), read_setup({"files": "1_000_000"})

    assert (small.tasks, small.partitions) == (1, 30)
    assert (large.tasks, large.partitions) == (5_000, 100)


@pytest.mark.parametrize(
    "text, latency",
    [
        ("30ms", Latency(first=0.03)),
        ("0s", Latency()),
        ("2.5ms", Latency(first=0.0025)),
        ("10ms-50ms", Latency("uniform", 0.01, 0.05)),
    ],
)
def test_latency_is_a_time_or_a_range(text: str, latency: Latency) -> None:
    """A latency is a time with its unit, or any time between two."""
    assert read_setup({"latency": text}).climate.latency == latency


def test_an_account_may_have_no_limit() -> None:
    """``none`` is no limit."""
    assert read_setup({"limit": "none"}).climate.limit is None


def test_faults_may_have_a_name() -> None:
    """A name brings its rules, and the usual latency and limit."""
    setup = read_setup({"faults": "storm", "latency": "5ms"})

    assert setup.climate.faults == CLIMATES["storm"].faults
    assert setup.climate.latency == Latency(first=0.005)
    assert setup.climate.limit == RequestLimit(20_000, 2_000)


def test_faults_may_be_a_file(tmp_path: Path) -> None:
    """A file brings rules, latency and limit; what the command line says goes before."""
    path = tmp_path / "weather.json"
    rules = [{"kind": "slow", "probability": 0.01}]
    path.write_text(json.dumps({"faults": rules, "latency": 0.1, "limit": 300}))

    alone = read_setup({"faults": str(path)}).climate
    other = read_setup({"faults": str(path), "latency": "7ms", "limit": "none"}).climate

    assert (alone.faults[0].kind, alone.latency.first, alone.limit) == (
        "slow",
        0.1,
        RequestLimit(300, 30),
    )
    assert (other.faults, other.latency.first, other.limit) == (alone.faults, 0.007, None)


def test_a_file_of_rules_alone_has_the_usual_rest(tmp_path: Path) -> None:
    """A file that says nothing of latency and limit leaves both as they are."""
    path = tmp_path / "weather.json"
    path.write_text('{"faults": []}')

    assert read_setup({"faults": str(path)}).climate == Setup().climate


@pytest.mark.parametrize(
    "name, text, remedy",
    [
        ("files", "many", "expected a whole number from 1 to 1_000_000_000_000"),
        ("files", "1.5", "expected a whole number"),
        ("files", "20K", "expected a whole number"),
        ("files", "0", "expected a whole number from 1"),
        ("files", "-3", "expected a whole number from 1"),
        ("tasks", "100_001", "expected a whole number from 1 to 100_000"),
        ("partitions", "200000", "expected a whole number from 1 to 100_000"),
        ("in-flight", "0", "expected a whole number from 1 to 1_000_000"),
        ("exact", "", "expected a whole number from 1"),
        ("seed", "x", "expected a whole number"),
        ("latency", "fast", "expected 20ms, 0.5s, or a range as 10ms-30ms"),
        ("latency", "30", "expected 20ms"),
        ("latency", "-1ms", "expected 20ms"),
        ("latency", "50ms-10ms", "expected the shorter time first"),
        ("limit", "0", "expected requests per second, such as 20_000, or none"),
        ("limit", "inf", "expected requests per second"),
        ("store", "s3", "expected adls, gcs, gcs-hns, hdfs"),
        ("cpu", "95", "expected the time of a request, such as 95us"),
        ("cpu", "0us", "expected the time of a request"),
        ("workers", "0", "expected a whole number from 1 to 1_024"),
        ("prices", "none.json", "expected a readable JSON file"),
        (
            "faults",
            "wild",
            "expected one of none, lossy, throttled, storm, late, or a readable JSON file",
        ),
    ],
)
def test_a_bad_value_is_named_with_its_remedy(name: str, text: str, remedy: str) -> None:
    """An error names the option, what was said, and what to say."""
    with pytest.raises(OptionError) as caught:
        read_setup({name: text})

    assert str(caught.value).startswith(f"--{name} is {text!r}: ")
    assert remedy in str(caught.value)


def test_a_bad_limit_is_told_in_what_the_store_counts() -> None:
    """Google counts writes."""
    with pytest.raises(OptionError, match=r"expected writes per second, such as 8_000, or none"):
        read_setup({"store": "gcs-hns", "limit": "0"})


@pytest.mark.parametrize(
    "content, wrong",
    [
        (b"{", "climate is not JSON"),
        (b'{"faults": [{"kind": "odd"}]}', "faults[0].kind is 'odd'"),
        (b'{"filesystems": []}', "climate.filesystems is not a field"),
        (b"\xff\xfe", "it is not text"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, content: bytes, wrong: str) -> None:
    """An error in a file names the option, the file and the field."""
    path = tmp_path / "weather.json"
    path.write_bytes(content)

    with pytest.raises(OptionError) as caught:
        read_setup({"faults": str(path)})

    assert "--faults" in str(caught.value)
    assert str(path) in str(caught.value)
    assert wrong in str(caught.value)


def test_another_size_has_the_same_shape() -> None:
    """Tasks stay as large, and partitions as many, where there are files for them."""
    setup = Setup(files=1_000_000, tasks=5_000, partitions=100)

    assert (setup.of(100_000).tasks, setup.of(100_000).partitions) == (500, 100)
    assert (setup.of(10).tasks, setup.of(10).partitions) == (1, 1)
    assert setup.of(1_000_000) == setup


def test_as_many_requests_are_in_flight_as_on_the_real_store() -> None:
    """The default is that of the store that is simulated."""
    assert KINDS["adls"].in_flight == options._WORKERS
    assert KINDS["gcs"].in_flight == KINDS["gcs-hns"].in_flight == gcs_options._WORKERS
    assert KINDS["hdfs"].in_flight == hdfs_options._WORKERS


def test_the_usual_is_that_of_the_store() -> None:
    """What is not said of limit, requests in flight and doubling is what the store has."""
    told = {"store": "gcs-hns"}
    setup = Setup(store="gcs-hns")

    assert setup == read_setup(told)
    assert setup.climate.limit == RequestLimit(8_000, 800)
    assert (setup.in_flight, setup.doubling) == (256, 1200)
    assert read_setup({"store": "gcs"}).climate.limit == RequestLimit(1_000, 100)
    assert Setup(store="hdfs") == read_setup({"store": "hdfs"})
    assert Setup(store="hdfs").climate.latency == Latency(first=0.002)


def test_what_is_said_counts_on_every_store() -> None:
    """A climate without a limit is one without, also where the store has one."""
    setup = Setup(store="gcs", climate=Climate(), in_flight=7)

    assert setup.climate == Climate()
    assert (setup.in_flight, setup.doubling) == (7, 0)
    assert Setup().doubling == 0


def test_a_limit_that_grows_does_so_as_often_in_a_smaller_job() -> None:
    """A tenth of the files has a tenth of the time in which the rate doubles."""
    setup = Setup(files=1_000_000, store="gcs")

    assert setup.of(100_000).doubling == 120
    assert setup.of(100_000).climate == setup.climate


def test_without_its_limit_a_store_is_else_the_same() -> None:
    """Latency and faults stay."""
    setup = read_setup({"store": "gcs", "faults": "lossy", "latency": "7ms"})
    free = setup.unlimited()

    assert free.climate.limit is None
    assert free.climate.latency == setup.climate.latency
    assert free.climate.faults == setup.climate.faults
    assert free.doubling == 0


def test_a_file_of_rules_speaks_the_language_of_the_store(tmp_path: Path) -> None:
    """Operations and codes are those of the service that is simulated."""
    path = tmp_path / "weather.json"
    path.write_text('{"faults": [{"kind": "before", "op": "move", "code": "forbidden"}]}')

    setup = read_setup({"store": "gcs", "faults": str(path)})

    assert setup.climate.faults[0].op == "move"
    with pytest.raises(OptionError, match=r"faults\[0\].op"):
        read_setup({"faults": str(path)})


def test_a_table_of_prices_is_read(tmp_path: Path) -> None:
    """Without one the list prices of the store hold, where it has any; a bad one is named."""
    path = tmp_path / "prices.json"
    path.write_text('{"rename": 0.5}')
    assert read_setup({"prices": str(path)}).prices == Prices(rename=0.5)
    assert Setup().prices == LIST_PRICES["adls"]
    assert Setup(store="hdfs").prices is Setup(store="gcs-hns").prices is None
    path.write_text("{}}")
    with pytest.raises(OptionError, match=r"prices\.json: the prices are not JSON"):
        read_setup({"prices": str(path)})


def test_the_processor_and_the_workers_are_read() -> None:
    """A time may be in microseconds."""
    setup = read_setup({"cpu": "95us", "workers": "16"})
    assert (setup.cpu, setup.workers) == (95e-6, 16)


def test_json_has_the_options_that_were_chosen() -> None:
    """What was left alone is not repeated."""
    said = Setup(options=Options(workers=7)).to_json()

    assert said["options"] == {"workers": 7}
    assert said["in_flight"] == 512
    assert said["limit"]["rate"] == 20_000
    assert said["doubling"] is None
    assert Setup(store="gcs").to_json()["doubling"] == 1200
