"""Programs that write a table through an engine, are killed, and are run again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
_PATIENCE = 240.0  # seconds

OPTIONS = """
OPTIONS = {
    "asynccommit.job.key": "nightly",
    "asynccommit.on.unfinished": "resume",
    "asynccommit.rate": 400,
}
"""

DASK_DRIVER = f"""
import sys
import dask.dataframe, distributed, pandas
from asynccommit import CommittedError
from asynccommit.dask import to_parquet
{OPTIONS}
if __name__ == "__main__":
    frame = pandas.DataFrame({{"v": range(4000)}})
    frame = dask.dataframe.from_pandas(frame.assign(day=frame.v % 50), npartitions=4)
    with distributed.Client(sys.argv[2]):
        try:
            to_parquet(
                frame, sys.argv[1], partition_on="day", write_index=False, options=OPTIONS
            )
        except CommittedError:
            print("done before")
"""
"""Writes 4,000 rows in 200 files to the first argument, by the cluster of the second."""


RAY_DRIVER = f"""
import sys
import ray
from asynccommit import CommittedError
from asynccommit.ray import Sink
from tests.support.engines import running_ray
{OPTIONS}
def day(batch):
    return {{**batch, "day": batch["id"] % 50}}

with running_ray():
    data = ray.data.range(4000, override_num_blocks=4).map_batches(day, batch_size=None)
    try:
        data.write_datasink(Sink(sys.argv[1], partition_cols="day", options=OPTIONS))
    except CommittedError:
        print("done before")
"""
"""Writes 4,000 rows in 200 files to its argument, by a Ray of its own."""


def killed_and_rerun(program: str, dest: Path, number: int, *arguments: str) -> list[str]:
    """Run a program, kill it, and run it again until it ends well; return how each run ended.

    Even numbers kill in the commit, odd ones while tasks write.
    """
    moment = "_temporary/*/*/commit-record.json" if number % 2 == 0 else "_temporary/**/*.parquet"
    ended = [_run(program, dest, moment, *arguments)]
    while ended[-1] != "done" and len(ended) < 5:
        ended.append(_run(program, dest, "", *arguments))
    return ended


def _run(program: str, dest: Path, moment: str, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "default"}
    with subprocess.Popen(
        [sys.executable, "-c", program, str(dest), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as child:
        if moment:
            while child.poll() is None and not any(dest.glob(moment)):
                time.sleep(0.002)
            child.send_signal(signal.SIGKILL)
        try:
            printed, _ = child.communicate(timeout=_PATIENCE)
        finally:
            child.kill()
    if child.returncode == -signal.SIGKILL:
        return "killed"
    return "done" if child.returncode == 0 else f"failed: {printed[-2000:]}"
