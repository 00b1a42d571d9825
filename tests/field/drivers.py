"""Drivers without Python: the programs, and the settings with which they are started.

The JVM starts the engine in them. Programs are compiled once for each Spark line: Scala's by the
compiler among Spark's jars, Java's by Janino.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from asynccommit.spark.jars import Spark, _compile, installed_spark
from tests.field import effects
from tests.field.environments import KEPT, Environment
from tests.field.place import Place, StartError
from tests.support.snippets import ROOT
from tests.support.spark import LOOPBACK, cluster

SCALA, JAVA = "org.field.ScalaApp", "org.field.JavaApp"
REFUSAL = "Cluster deploy mode is currently not supported for python applications on standalone"
# The driver of a worker gets them from Spark 4 on only; Java 17 has these closed.
_OPENED = " ".join(
    f"--add-opens=java.base/{name}=ALL-UNNAMED"
    for name in ("java.lang", "java.lang.invoke", "java.nio", "java.util", "sun.nio.ch")
)
_QUERIES = """\
CREATE TABLE flights USING parquet PARTITIONED BY (day) LOCATION '{folder}/flights'
  AS SELECT id, id % 7 AS day FROM range(500);
INSERT INTO flights SELECT id, id % 7 FROM range(500, 1000);
SELECT concat('rows: ', count(*)) FROM flights;
"""
_SCALA = """\
package org.field

import org.apache.spark.sql.SparkSession

object ScalaApp {
  def main(arguments: Array[String]): Unit = {
    val spark = SparkSession.builder.appName("flights").getOrCreate()
    val flights = spark.range(0, 1000, 1, 4).selectExpr("id", "id % 7 as day")
    flights.write.partitionBy("day").parquet(arguments(0))
    println("rows: " + spark.read.parquet(arguments(0)).count())
    spark.stop()
  }
}
"""
_JAVA = """\
package org.field;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SparkSession;

public class JavaApp {
  public static void main(String[] arguments) {
    SparkSession spark = SparkSession.builder().appName("flights").getOrCreate();
    Dataset flights = spark.range(1000).selectExpr(new String[] {"id", "id % 7 as day"});
    flights.write().partitionBy(new String[] {"day"}).parquet(arguments[0]);
    System.out.println("rows: " + spark.read().parquet(arguments[0]).count());
    spark.stop();
  }
}
"""


def prepare(place: Place, engine: str = "") -> None:
    """Write what ``spark-conf`` prints into spark-defaults.conf.

    Args:
        place: where the application runs.
        engine: a program to run in the place of the Python that the settings name.
    """
    place.left_out |= {"PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON"}  # a driver without Python
    place.write("")
    printed = place.python("-m", "asynccommit", "spark-conf")
    said = f"spark.asynccommit.python {engine}\n" if engine else ""
    with (place.folder / "conf/spark-defaults.conf").open("a", encoding="utf-8") as file:
        file.write(printed + said)


def own_jar(place: Place) -> str:
    """Return the jar that the settings of a place name."""
    settings = (place.folder / "conf/spark-defaults.conf").read_text("utf-8")
    *_, found = re.findall(r"[^\s,]+/asynccommit-[^/\s,]*\.jar", settings)
    return str(found)


def queries(place: Place) -> str:
    """Return queries that write the table."""
    return _QUERIES.format(folder=place.folder)


def problems(place: Place, tables: Sequence[str], output: str) -> list[str]:
    """Return a line for each effect that is not there: rows, a report, and no leftovers."""
    found = [*effects.table_problems(place.folder / "flights")]
    report = place.python("-m", "asynccommit", "report", "flights")
    if ": committed" not in report:
        found.append(f"the report is: {report}")
    if "rows: 1000" not in output and not place.master.startswith("spark:"):
        found.append("Spark has not counted the rows")
    return found


def sql(place: Place) -> str:
    """Run queries by ``spark-sql``."""
    prepare(place)
    (place.folder / "q.sql").write_text(queries(place), "utf-8")
    return place.run("spark-sql", "--master", place.master, "-f", "q.sql")


def scala(place: Place) -> str:
    """Submit a job in Scala."""
    prepare(place)
    return submit(place, SCALA)


def java(place: Place) -> str:
    """Submit a job in Java."""
    prepare(place)
    return submit(place, JAVA)


def submit(place: Place, name: str, *options: str) -> str:
    """Submit a class with its jar, as a user does."""
    jar = str(jar_of(place.environment))
    said = ("--master", place.master, "--class", name, *options)
    return place.run("spark-submit", *said, jar, f"{place.folder}/flights")


def in_cluster(place: Place) -> str:
    """Submit the job in Scala to a standalone cluster, whose worker runs the driver."""
    (place.folder / "cluster").mkdir()
    for key in ("spark.driver.host", "spark.driver.bindAddress"):
        del place.settings[key]  # the worker's are others
    prepare(place)
    home = str(place.environment.spark)
    with cluster(place.folder / "cluster", home=home) as master:
        place.master = master
        wait = ("--conf", "spark.standalone.submit.waitAppCompletion=true")
        opened = ("--conf", f"spark.driver.extraJavaOptions={_OPENED}")
        return submit(place, SCALA, "--deploy-mode", "cluster", *wait, *opened)


def python_in_cluster(place: Place) -> str:
    """Submit a program in Python to such a cluster; return Spark's refusal."""
    app = place.write("")
    said = ("--master", f"spark://{LOOPBACK}:1", "--deploy-mode", "cluster")
    try:
        place.run("spark-submit", *said, app)
    except StartError as error:
        if REFUSAL in str(error):
            return str(error)
        raise
    raise StartError("Spark has taken a program in Python")


def jar_of(environment: Environment) -> Path:
    """Return the jar with the programs for a Spark line; compile them once."""
    spark = installed_spark(environment.spark)
    digest = hashlib.sha256(f"{spark.version}{_SCALA}{_JAVA}".encode()).hexdigest()[:8]
    jar = KEPT / f"programs-{digest}.jar"
    if not jar.is_file():
        jar.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as scratch:
            _pack(_compiled(spark, Path(scratch)), jar)
    return jar


def _compiled(spark: Spark, scratch: Path) -> Path:
    build = (ROOT / "asynccommit/spark/jvm/Build.java").read_text("utf-8")
    classes = _compile(spark, {"JavaApp.java": _JAVA, "Build.java": build}, scratch)
    (scratch / "ScalaApp.scala").write_text(_SCALA, "utf-8")
    compiler = [spark.java, "-cp", spark.class_path, "scala.tools.nsc.Main", "-usejavacp"]
    subprocess.run([*compiler, "-d", str(classes), str(scratch / "ScalaApp.scala")], check=True)
    return classes


def _pack(classes: Path, jar: Path) -> None:
    with zipfile.ZipFile(jar, "w") as archive:
        for path in sorted(classes.rglob("*.class")):
            archive.write(path, path.relative_to(classes))
