"""Demos: one job with Spark's own committer and with this one, compared row by row."""

from asynccommit.demo.adls import run_on_adls
from asynccommit.demo.adls_outcome import AdlsOutcome, adls_table
from asynccommit.demo.flights import run
from asynccommit.demo.gcs import GCS_WEATHER, MONTHS, run_on_gcs
from asynccommit.demo.gcs_outcome import GcsOutcome, GcsSide, gcs_table
from asynccommit.demo.outcome import DemoResult, Killed, Overwritten, Side, StoreBehaviour, table
from asynccommit.demo.s3 import S3_MONTHS, S3_WEATHER, run_on_s3
from asynccommit.demo.s3_outcome import Copied, S3Outcome, S3Side, s3_table

__all__ = [
    "GCS_WEATHER",
    "MONTHS",
    "S3_MONTHS",
    "S3_WEATHER",
    "AdlsOutcome",
    "Copied",
    "DemoResult",
    "GcsOutcome",
    "GcsSide",
    "Killed",
    "Overwritten",
    "S3Outcome",
    "S3Side",
    "Side",
    "StoreBehaviour",
    "adls_table",
    "gcs_table",
    "run",
    "run_on_adls",
    "run_on_gcs",
    "run_on_s3",
    "s3_table",
    "table",
]
