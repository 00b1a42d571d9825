"""Programs that write a table through an engine, are killed, and are run again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from asynccommit.commit.layouts.layout import STAGED

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


RAY_CHECKPOINT_DRIVER = f"""
import os, sys, time
from pathlib import Path
import ray
from asynccommit import CommittedError
from asynccommit.ray import Sink
from tests.support.engines import running_ray
{OPTIONS}
dest, seen = map(Path, sys.argv[1:])

def day(batch):
    time.sleep(0.3)
    with open(seen, "a") as file:
        file.write("".join(f"{{number}}\\n" for number in batch["id"]))
    return {{**batch, "day": batch["id"] % 25}}

with running_ray():
    sink = Sink(dest, partition_cols="day", options=OPTIONS)
    own = sink.checkpoint("id", str(dest / "_checkpoints"))
    ray.data.DataContext.get_current().checkpoint_config = own
    data = ray.data.range(800, override_num_blocks=8)
    try:
        data.map_batches(day, batch_size=None).write_datasink(sink)
    except CommittedError:
        print("done before")
"""
"""Writes 800 rows to the first argument, with a checkpoint.

The numbers of the rows that it has worked on are added to the second.
"""


def killed_and_rerun(program: str, dest: Path, number: int, *arguments: str) -> list[str]:
    """Run a program, kill it, and run it again until it ends well; return how each run ended.

    Even numbers kill in the commit, odd ones while tasks write.
    """
    writing = f"_temporary/**/*.parquet{STAGED}"
    moment = "_temporary/*/*/commit-record.json" if number % 2 == 0 else writing
    return killed_at([moment], program, dest, *arguments)


def killed_at(
    moments: Sequence[str], program: str, dest: Path, *arguments: str, until: int = 1
) -> list[str]:
    """Run a program, killed at each moment in turn, then until it ends well.

    Args:
        moments: patterns of files below ``dest`` that are there at that moment.
        program: its text.
        dest: its first argument.
        arguments: further ones.
        until: how many of the files must be there.

    Returns how each run ended.
    """
    ended = [_run(program, dest, moment, *arguments, until=until) for moment in moments]
    while ended[-1] != "done" and len(ended) < len(moments) + 4:
        ended.append(_run(program, dest, "", *arguments))
    return ended


def _run(program: str, dest: Path, moment: str, *arguments: str, until: int = 1) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "default"}
    with subprocess.Popen(
        [sys.executable, "-c", program, str(dest), *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as child:
        if moment:
            while child.poll() is None and len(list(dest.glob(moment))) < until:
                time.sleep(0.002)
            child.send_signal(signal.SIGKILL)
        try:
            printed, _ = child.communicate(timeout=_PATIENCE)
        finally:
            child.kill()
    if child.returncode == -signal.SIGKILL:
        return "killed"
    return "done" if child.returncode == 0 else f"failed: {printed[-2000:]}"
