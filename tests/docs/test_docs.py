"""README and docs tell the truth: their code runs, their commands exist, their links lead on."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

import pytest

from asynccommit import errors
from asynccommit.cli.output import Exit
from asynccommit.cli.output import __doc__ as cli_table
from asynccommit.demo.adls import client_conf, client_jar
from asynccommit.options.job import CLASSIC, KEYS, MANIFEST, OBSOLETE_KEYS
from asynccommit.options.uploads import UPLOAD_KEYS
from asynccommit.stores.adls.options import KNOWN
from asynccommit.testing.emulators.adls.auth import DEVELOPMENT_KEY
from asynccommit.testing.emulators.adls.emulator import running_emulator
from asynccommit.testing.emulators.config import Settings
from asynccommit.testing.emulators.control import __doc__ as control_table
from asynccommit.testing.models.fault_rules import KINDS, OPS, REPLIES, Fault
from tests.support.abfs import why_not
from tests.support.command_tree import leaves
from tests.support.snippets import (
    HOW,
    PAGES,
    ROOT,
    SHOWN_ONLY,
    Snippet,
    commands,
    run_page,
    snippets,
)

EVERY = [snippet for page in PAGES for snippet in snippets(page)]
ACCOUNT = "account"


def _plain(page: Path) -> list[Snippet]:
    found = (
        _ for _ in snippets(page) if _.language not in SHOWN_ONLY or "output" in _.how or _.file
    )
    return [_ for _ in found if not _.how & {"spark", "abfs", "make", "install"}]


def _spark(page: Path) -> list[Snippet]:
    return [_ for _ in snippets(page) if "spark" in _.how]


def _abfs(page: Path) -> list[Snippet]:
    return [_ for _ in snippets(page) if "abfs" in _.how]


def _name(page: Path) -> str:
    return page.name


def test_each_block_says_how_it_is_run() -> None:
    """A block of code says by its first line how it is run, so none is left out."""
    languages = SHOWN_ONLY | {"python", "console"}

    assert [str(snippet) for snippet in EVERY if snippet.language not in languages] == []
    assert [str(snippet) for snippet in EVERY if not snippet.how <= HOW | {snippet.file}] == []


@pytest.mark.every(2)
@pytest.mark.timeout(300)  # some start a cluster
@pytest.mark.sample(2)
@pytest.mark.parametrize("page", [_ for _ in PAGES if _plain(_)], ids=_name)
def test_blocks_without_spark_run(page: Path, tmp_path: Path) -> None:
    """The Python of a page is a script that runs and prints what the page shows."""
    run_page(_plain(page), tmp_path)


@pytest.mark.every(4)
@pytest.mark.full
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", [_ for _ in PAGES if _spark(_)], ids=_name)
def test_blocks_with_spark_run(page: Path, tmp_path: Path) -> None:
    """The Spark blocks of a page are a script that runs and prints what the page shows."""
    run_page(_spark(page), tmp_path)


@pytest.mark.every(4)
@pytest.mark.full
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", [_ for _ in PAGES if _abfs(_)], ids=_name)
def test_blocks_on_adls_run(page: Path, tmp_path: Path) -> None:
    """The Spark blocks that write to an account are a script that runs against an emulator."""
    if reason := why_not():
        pytest.skip(reason)
    with _account(tmp_path) as environment:
        run_page(_abfs(page), tmp_path, environment)


@contextmanager
def _account(folder: Path) -> Iterator[Mapping[str, str]]:
    """Serve the account of the pages; yield what leads Spark there, and its key."""
    with running_emulator(accounts={ACCOUNT: DEVELOPMENT_KEY}) as emulator:
        emulator.do(lambda it: it.model.create_filesystem("data"))
        conf = {
            key: value
            for key, value in client_conf(ACCOUNT, "", f"127.0.0.1:{emulator.port}").items()
            if "account" not in key  # the page says that
        }
        lines = [f"spark.hadoop.{key} {value}" for key, value in conf.items()]
        (folder / "conf").mkdir()
        (folder / "conf/spark-defaults.conf").write_text(
            "\n".join([f"spark.jars {client_jar()}", *lines])
        )
        yield {"SPARK_CONF_DIR": str(folder / "conf"), "ACCOUNT_KEY": emulator.key}


@pytest.mark.parametrize("snippet", [_ for _ in EVERY if "make" in _.how], ids=str)
def test_make_targets_exist(snippet: Snippet) -> None:
    """A ``make`` command that a page shows names a target of the Makefile."""
    for command, _ in commands(snippet):
        done = subprocess.run(
            ["bash", "-c", f"{command.split('#')[0]} -n PYTHON=python3"],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )

        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("snippet", [_ for _ in EVERY if "install" in _.how], ids=str)
def test_extras_exist(snippet: Snippet) -> None:
    """A ``pip install`` that a page shows names extras of the package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = re.findall(r"\[([a-z,]+)\]", snippet.text)

    assert {extra for names in named for extra in names.split(",")} <= {
        *project["optional-dependencies"]
    }


def test_readme_is_a_first_page() -> None:
    """README has at most 700 words, one table, and its first code on the first screen."""
    text = (ROOT / "README.md").read_text("utf-8")

    assert len(text.split()) <= 700
    assert len(re.findall(r"^\|[-|]+\|$", text, re.MULTILINE)) == 1
    assert text[: text.index("```")].count("\n") < 30


def test_readme_starts_with_the_two_commands() -> None:
    """The README's ``make`` commands are exactly the two that set up everything."""
    found = [
        command
        for snippet in snippets(ROOT / "README.md")
        if "make" in snippet.how
        for command, _ in commands(snippet)
    ]

    assert [command.split("#")[0].strip() for command in found] == ["make demo", "make test"]


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of a page leads to a file, and every anchor to a heading of it."""
    text = page.read_text("utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target or target.startswith("mailto:"):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page

        assert file.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in _anchors(file), f"{page.name} links to {target}"


def test_every_option_is_documented() -> None:
    """The page of options has a row for every key there is, and for no other."""
    text = (ROOT / "docs/options.md").read_text("utf-8")
    rows = re.findall(r"^\| `([\w.-]+)` \|(?: `(\w+)` \|)?", text, flags=re.MULTILINE)
    long = {"mmc.": MANIFEST, "foc.": CLASSIC}
    said = {long.get(key[:4], key[:4]) + key[4:]: field for key, field in rows}

    keys = {**KEYS, **UPLOAD_KEYS}
    assert {key: field for key, field in said.items() if key in keys} == {
        key: field for key, (field, _) in keys.items()
    }
    assert {key for key in said if not key.startswith("spark.asynccommit.")} == {
        *keys,
        *OBSOLETE_KEYS,
    }


def test_every_error_is_documented() -> None:
    """The page of errors shows the tree as errors.py draws it."""
    text = (ROOT / "docs/errors.md").read_text("utf-8")
    drawing = (errors.__doc__ or "").partition("\n\n")[2]

    assert drawing.strip() in text


def test_every_storage_option_is_documented() -> None:
    """The page of stores names every option of a store on Azure."""
    text = (ROOT / "docs/stores.md").read_text("utf-8")

    assert {name for name in KNOWN if f"`{name}`" not in text and f'"{name}"' not in text} == set()


def test_every_part_of_the_emulator_is_documented() -> None:
    """Its page has every kind of fault, operation, setting and place of its own endpoint."""
    text = (ROOT / "docs/emulators.md").read_text("utf-8")
    settings = {field.name for field in fields(Settings)} - {"climate"}
    table = re.findall(r"^((?:[A-Z]+, )*[A-Z]+) +(\w+) ", control_table or "", re.MULTILINE)
    places = {" ".join(found) for found in table}
    names = {*KINDS, *OPS, *REPLIES, *Fault.__slots__, *settings, "latency", "limit", "faults"}

    assert {name for name in names if f"`{name}`" not in text} == set()
    assert len(places) > 8
    assert {place for place in places if f"`{place}`" not in text} == set()


def test_every_command_is_documented() -> None:
    """The page of the command line has every command and sub-command."""
    text = (ROOT / "docs/cli.md").read_text("utf-8")
    names = [" ".join(words) for words, _ in leaves()]

    assert len(names) > 20
    assert [name for name in names if f"asynccommit {name} " not in text] == []


def test_every_exit_code_is_documented() -> None:
    """The page of the command line and the package have each exit code, by its name in JSON."""
    text = (ROOT / "docs/cli.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \| (?:`(\w+)`)? ?\|", text, flags=re.MULTILINE)
    package = re.findall(r"^(\d+) +\S", cli_table or "", flags=re.MULTILINE)
    codes = {code: code.name.lower() for code in Exit}

    assert {int(code): name for code, name in rows} == {**codes, Exit.DONE: ""}
    assert [int(code) for code in package] == list(codes)


def _anchors(page: Path) -> set[str]:
    """Return the anchors of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
