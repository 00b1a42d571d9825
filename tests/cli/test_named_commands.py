"""Every command and option that a message, a page or the Makefile names exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from asynccommit.cli.old_spellings import COMMANDS
from tests.support.command_tree import every_command, leaves
from tests.support.snippets import PAGES, ROOT

OPTIONS: Mapping[tuple[str, ...], set[str]] = {
    words: {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    for words, command in leaves()
}
GROUPS = {words for words, _ in every_command()} - {*OPTIONS, ("demo",)}
"""Groups that need a sub-command; ``demo`` runs ``local`` without one."""
NAMED = re.compile(r"asynccommit ([a-z][a-z0-9-]*)(?: ([a-z0-9-]+|X))?")
FLAG = re.compile(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*")
OTHERS = {"--help", "--version", "--x-s", "--xa-s"}  # the last two are of directory buckets
HELPERS = {"command", "job_command"}
"""Functions that make a command of a verb, a place and options."""

SOURCES = sorted((ROOT / "asynccommit").rglob("*.py"))


def _strings(tree: ast.AST) -> Iterator[str]:
    """Yield the text of each string that is no docstring; ``X`` for what is filled in."""
    inner = {
        id(value)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for value in node.values
    }
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values
            )
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in inner | docs
        ):
            yield node.value


def _leaf(first: str, second: str | None) -> tuple[str, ...] | None:
    """Return the words of a command that is named; ``None`` if prose goes on otherwise."""
    if (first,) in OPTIONS:
        return (first,)
    return (first, second) if second and (first, second) in OPTIONS else None


def _calls(tree: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """Yield verb and literal options of each call that makes a command."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            verb = node.args[0] if node.func.id in HELPERS and node.args else None
            if isinstance(verb, ast.Constant):
                given = [arg.value for arg in node.args[2:] if isinstance(arg, ast.Constant)]
                yield str(verb.value), [str(one) for one in given if str(one).startswith("--")]


def test_commands_that_messages_make_exist() -> None:
    """Each command that the package puts together exists, and has the options given to it."""
    found = [
        (path, *call) for path in SOURCES for call in _calls(ast.parse(path.read_text("utf-8")))
    ]

    assert len(found) > 20
    for path, verb, flags in found:
        assert (verb,) in OPTIONS, path
        assert {*flags} <= OPTIONS[(verb,)], path


def test_commands_that_messages_name_exist() -> None:
    """No message names an old command, a group without its sub-command, or an unknown option."""
    every = set().union(*OPTIONS.values()) | OTHERS
    for path in SOURCES:
        if path.name == "old_spellings.py":
            continue
        for text in _strings(ast.parse(path.read_text("utf-8"))):
            for first, second in NAMED.findall(text):
                assert first not in COMMANDS, (path, text)
                assert (first,) not in GROUPS or second == "X" or (first, second) in OPTIONS, (
                    path,
                    text,
                )
            if not {"spark", "demo"} & {*path.parts}:
                assert {*FLAG.findall(text)} <= every, (path, text)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "Makefile"], ids=lambda page: page.name)
def test_commands_that_pages_name_exist(page: Path) -> None:
    """A command that a page shows exists, and has the options that the page gives it."""
    text = page.read_text("utf-8").replace("\\\n", " ")
    for found in re.finditer(r"asynccommit [a-z][^\n`]*", text):
        line = found[0]
        words = line.split()
        leaf = _leaf(words[1], words[2] if len(words) > 2 else None)

        assert words[1] not in COMMANDS, line
        if leaf:
            typed = re.split(r" #|[;|&>()]| {2,}", line)[0]
            assert {*FLAG.findall(typed)} <= OPTIONS[leaf] | OTHERS, line
