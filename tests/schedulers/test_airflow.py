"""The recipe for Airflow, run by its executor: a task dies in its commit, and Airflow retries it.

Airflow pins what it is installed with, so it is not in the lock: `tox -e airflow` runs this.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import pytest

from tests.support.recipes import is_exact, kill_in_the_commit, logged, write_recipe

pytestmark = [
    pytest.mark.skipif(not find_spec("airflow"), reason="Airflow is not installed"),
    pytest.mark.full,
    pytest.mark.timeout(900),
]
AIRFLOW = str(Path(sys.executable).with_name("airflow"))
DAY = "2026-05-01"


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    """Return the environment of an Airflow with one local worker and the DAG of the page."""
    (tmp_path / "dags").mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    own = {
        "AIRFLOW_HOME": str(tmp_path / "home"),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API_AUTH__JWT_SECRET": "a secret of this test " * 4,
        "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path / "dags"),
        "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "1",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": "1",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
        "NO_PROXY": "*",
        "no_proxy": "*",
    }
    return {**os.environ, **own}


@pytest.fixture
def api_server(environment: Mapping[str, str], tmp_path: Path) -> Iterator[None]:
    """Run the API server that tasks report to."""
    subprocess.run([AIRFLOW, "db", "migrate"], env=environment, check=True, capture_output=True)
    with (
        (tmp_path / "api.log").open("wb") as log,
        subprocess.Popen([AIRFLOW, "api-server"], env=environment, stdout=log, stderr=log) as run,
    ):
        try:
            _await(f"{environment['AIRFLOW__API__BASE_URL']}/api/v2/version")
            yield
        finally:
            run.terminate()
            try:
                run.wait(60)
            finally:
                run.kill()


def _await(url: str) -> None:
    open_url = urllib.request.build_opener(urllib.request.ProxyHandler({})).open
    ends = time.monotonic() + 240
    while time.monotonic() < ends:
        with suppress(OSError), open_url(url, timeout=5):
            return
        time.sleep(0.5)
    raise TimeoutError(url)


@pytest.mark.usefixtures("api_server")
def test_a_task_that_dies_in_its_commit_is_retried(
    environment: Mapping[str, str], tmp_path: Path
) -> None:
    """The retry finishes the interrupted commit, and a second run of the day writes nothing."""
    write_recipe(tmp_path / "dags", "nightly.py", "dag.py")
    table = tmp_path / "flights"  # the recipe's is in the working directory
    killer = Thread(target=kill_in_the_commit, args=(table,))
    killer.start()
    first = _run(environment, tmp_path)
    killer.join()
    second = _run(environment, tmp_path)

    assert "try_number=2" in first
    assert "Returned value was: done before" in first
    assert "try_number=2" not in second
    assert "Returned value was: done before" in second
    assert is_exact(table, DAY)
    assert not (table / "_temporary").exists()


def _run(environment: Mapping[str, str], folder: Path) -> str:
    """Run the DAG for a day by the executor; return what was logged."""
    file = str(folder / "dags" / "dag.py")
    command = [AIRFLOW, "dags", "test", "-f", file, "flights", DAY, "--use-executor"]
    return logged(command, environment, folder)
