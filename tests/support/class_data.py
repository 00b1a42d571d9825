"""An archive of the classes of Spark's drivers, from which a JVM maps them instead of loading them.

Loading classes is half of the CPU time of a driver that lives for seconds. The archive is made
once in ``build/class-data`` for each Java and each set of Spark's jars. A JVM ignores it if it is
missing, or if its class path or its Java is another.

Usage: python -m tests.support.class_data
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from tests.support.hadoop import jars, java_command

ROOT = Path(__file__).parents[2]

# A JVM that lives for seconds spends half of them on code for hours.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# What a JVM says of an archive is in the output of the program.
_QUIET = "-Xlog:cds*=off"
_PATIENCE = 300.0  # seconds for a program that takes 50 of them
_PROGRAM = """
import os
import sys
from pathlib import Path
from asynccommit.spark import configure
from tests.support.spark import ENVIRONMENT, builder

os.environ.update(ENVIRONMENT)
scratch = Path(sys.argv[1])
spark = configure(builder(scratch)).getOrCreate()
rows = [(number, number % 3, str(number)) for number in range(9)]
frame = spark.createDataFrame(rows, "id long, p long, s string").repartition(2)
for mode in ("append", "overwrite"):
    frame.write.mode(mode).partitionBy("p").parquet(str(scratch / "table"))
spark.read.parquet(str(scratch / "table")).groupBy("p").count().collect()
spark.stop()
"""


def driver_options() -> str:
    """Return the options of the JVM of a driver: for a short life, and with the archive."""
    archive = archive_of_driver()
    shared = f" -XX:SharedArchiveFile={archive} {_QUIET}" if archive else ""
    return f"{SHORT_LIVED}{shared}"


def archive_of_driver() -> Path | None:
    """Return where the archive is or will be, or ``None`` without Java or PySpark."""
    java, class_path = java_command(), jars()
    if java is None or class_path is None:
        return None
    found = sorted(os.scandir(Path(class_path).parent), key=lambda entry: entry.name)
    files = [(it.path, it.stat().st_size, it.stat().st_mtime_ns) for it in found]
    release = Path(os.path.realpath(java)).parents[1] / "release"
    version = release.read_text("utf-8") if release.exists() else ""
    key = sha256(repr((os.path.realpath(java), version, files, _PROGRAM)).encode()).hexdigest()
    archive = ROOT / "build" / "class-data" / f"{key[:16]}.jsa"
    # The options are words that spaces divide.
    return None if " " in str(archive) else archive


def make_archive() -> None:
    """Make the archive unless it is there; without it, drivers are only slower."""
    archive = archive_of_driver()
    if archive is None or archive.exists():
        return
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as scratch:
        made = Path(scratch, archive.name)
        options = f"{SHORT_LIVED} -XX:ArchiveClassesAtExit={made} {_QUIET}"
        environment = {**os.environ, "SPARK_SUBMIT_OPTS": options, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-W", "ignore", "-c", _PROGRAM, scratch]
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=_PATIENCE,
            )
        if made.exists():
            # Two runs may make it at once, and a JVM may have it open.
            made.replace(archive)


if __name__ == "__main__":
    make_archive()
