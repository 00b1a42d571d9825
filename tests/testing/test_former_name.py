"""The former name of the emulators."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import warnings
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    from asynccommit.emulators.adls import AdlsEmulator
    from asynccommit.emulators.gcs import GcsEmulator
    from asynccommit.emulators.plugin import adls_emulator
    from asynccommit.emulators.proxy import S3Proxy
import asynccommit.testing as testing
print([AdlsEmulator, GcsEmulator, S3Proxy] == [
    testing.AdlsEmulator, testing.GcsEmulator, testing.S3Proxy
])
print([str(warning.message) for warning in told if warning.category is DeprecationWarning])
"""


def test_the_former_name_gives_the_same_classes_and_one_warning() -> None:
    """Programs written for the last version import what they did, and are told the new name."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )

    assert run.stdout.splitlines() == [
        "True",
        "['asynccommit.emulators is asynccommit.testing now: import the emulators from there']",
    ]
