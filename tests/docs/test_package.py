"""What a package index shows, and what the container is built from."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec

import pytest

import asynccommit
from tests.support.snippets import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CONTAINER = (ROOT / "Containerfile").read_text("utf-8")
BUILT = pytest.mark.skipif(
    None in (find_spec("hatchling"), find_spec("hatch_fancy_pypi_readme")),
    reason="needs what builds the package: requirements/build.txt",
)


@BUILT
def test_description_has_no_dead_links() -> None:
    """A package index shows no link or picture that leads nowhere there, and all of the text."""
    command = [sys.executable, "-m", "hatchling", "metadata", "readme"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)

    assert "Something failed: the runbook, errors, the command line." in done.stdout
    targets = re.findall(r"\]\(([^)]*)\)", done.stdout)
    assert [target for target in targets if not target.startswith("https://")] == []


def test_version_is_importable() -> None:
    """``asynccommit.__version__`` is the version that the build reads."""
    text = (ROOT / "asynccommit/version.py").read_text("utf-8")

    assert f'__version__ = "{asynccommit.__version__}"' in text


def test_each_python_of_the_classifiers_has_an_environment() -> None:
    """A version of Python is promised if tox tests it, and only then."""
    named = {
        text.rpartition(" ")[2].replace(".", "")
        for text in PROJECT["classifiers"]
        if text.startswith("Programming Language :: Python :: 3.")
    }
    tox = (ROOT / "tox.ini").read_text("utf-8")
    tested = re.search(r"\[testenv:py\{([\d,]+)\}\]", tox)

    assert tested
    assert named == {*tested[1].split(",")}


def test_container_copies_what_exists() -> None:
    """Each source of a ``COPY`` is in the repository, and each extra is one of the package."""
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", CONTAINER, re.MULTILINE)
    extras = re.findall(r"'\.\[([a-z0-9,]+)\]'", CONTAINER)

    assert copied
    assert [one for line in copied for one in line.split() if not (ROOT / one).exists()] == []
    assert {*",".join(extras).split(",")} <= {*PROJECT["optional-dependencies"]}


def test_container_has_no_credentials_and_no_root() -> None:
    """The image runs as a user of its own, and no instruction sets a secret."""
    users = re.findall(r"^USER (\S+)$", CONTAINER, re.MULTILINE)

    assert users == ["1000"]
    assert re.findall(r"^(?:ARG|ENV) .*(?:KEY|SECRET|TOKEN|PASSWORD)", CONTAINER, re.M) == []


def test_spark_extra_brings_pandas_and_pyarrow() -> None:
    """``createDataFrame`` from pandas works after ``pip install 'asynccommit[spark]'``."""
    extras = PROJECT["optional-dependencies"]

    assert "asynccommit[datasource]" in extras["spark"]
    assert {re.split(r"[<>=]", need)[0] for need in extras["datasource"]} == {"pandas", "pyarrow"}


def test_spark_extra_brings_no_pandas_of_which_pyspark_warns() -> None:
    """PySpark 4.3 does not support pandas 3; users of the other extras may have it."""
    extras = PROJECT["optional-dependencies"]
    locked = (ROOT / "requirements/dev.txt").read_text("utf-8")

    assert "pandas<3" in extras["spark"]
    assert "pandas>=2.2" in extras["datasource"]
    assert re.findall(r"^pandas==(\d+)", locked, re.MULTILINE) == ["2"]
