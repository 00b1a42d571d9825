"""Demos that compare Spark's own committer with this one."""

from asynccommit.demo.adls import AdlsOutcome, run_on_adls
from asynccommit.demo.azure_flat import run_on_azure_flat
from asynccommit.demo.buckets import BucketOutcome, BucketSide, Copied
from asynccommit.demo.gcs import GCS, GCS_WEATHER, MONTHS, run_on_gcs
from asynccommit.demo.hdfs import HDFS_MONTHS, HdfsOutcome, run_on_hdfs
from asynccommit.demo.local import DemoResult, Side, run
from asynccommit.demo.outcome import Killed, Overwritten, StoreBehaviour
from asynccommit.demo.python_tasks import ResumedOutcome
from asynccommit.demo.s3 import S3, S3_MONTHS, S3_WEATHER, run_on_s3
from asynccommit.demo.s3_express import run_on_s3_express

__all__ = [
    "GCS",
    "GCS_WEATHER",
    "HDFS_MONTHS",
    "MONTHS",
    "S3",
    "S3_MONTHS",
    "S3_WEATHER",
    "AdlsOutcome",
    "BucketOutcome",
    "BucketSide",
    "Copied",
    "DemoResult",
    "HdfsOutcome",
    "Killed",
    "Overwritten",
    "ResumedOutcome",
    "Side",
    "StoreBehaviour",
    "run",
    "run_on_adls",
    "run_on_azure_flat",
    "run_on_gcs",
    "run_on_hdfs",
    "run_on_s3",
    "run_on_s3_express",
]
