"""The archive from which Spark's drivers map their classes."""

from __future__ import annotations

import subprocess

import pytest

from tests.support.class_data import driver_options
from tests.support.hadoop import java_command


@pytest.mark.jvm
def test_a_jvm_with_another_class_path_says_nothing_of_the_archive() -> None:
    """Its output is that of the program: tests read it."""
    java = java_command()
    if java is None:
        pytest.skip("needs java")
    command = [java, *driver_options().split(), "-cp", "another.jar", "-version"]

    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout == ""
    assert "[warning]" not in done.stderr
