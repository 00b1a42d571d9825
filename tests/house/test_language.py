"""The language of the project, as far as a pattern can tell: see CONTRIBUTING.md#language."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.trees import parsed

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "asynccommit").rglob("*.py"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

# Each phrase makes a reader stop; behind it is what to write instead.
MESSAGES = {
    r"(?:: |, |; |\. |\bor |^)[Ss]ay (?!so\b)\S": "expected X, use X, set X",
    r"\b(?:is|are) none\b": "is invalid",
    r"\b(?:that|and|so|which) nobody\b|\bnobody can tell\b": "the thing that is unknown",
    r"\b(?:cannot|can) be told\b": "is unknown",
    r"\bis told\b|\bit is of\b": "the subject and its verb",
    r"\ball the same\b": "anyway, still",
    r"\bthis very\b|\bthe very\b": "this, the same",
    r"\bwhat is (?:no|there|wanted|left|not)\b": "name the thing",
    r"(?<!there )(?<!There )\bis no (?!longer\b)\w+ of\b": "is not a",
    r"\bsign of life\b|\bsigns of life\b": "heartbeat",
    r"\bby and by\b|\bgladly\b|\bof whom\b|\bsays no\b|\bthat is to\b": "plain words",
}

PROSE = {
    r"(?<!if )(?<!there )\b(?:is|are) none\b(?! (?:of|in)\b)": "is invalid, does not exist",
    r"\bnobody (?:can|could) tell\b|\bcan(?:not)? be told\b": "is unknown",
    r"\bis told\b|\bare told\b": "gets an error, is known",
    r"\ball the same\b": "anyway, still",
    r"\bthis very\b": "this",
    r"\bwhat is (?:no|wanted)\b": "name the thing",
    r"\b[Ss]ign of life\b|\b[Ss]igns of life\b": "heartbeat",
    r"\bby and by\b|\bgladly\b|\bof whom\b|\bsays no\b|\bwhosever\b": "plain words",
}


def _texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield every text of a module that is no docstring, with the holes of f-strings as ``{}``."""
    tree = parsed(path)
    inside: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            inside.add(node.value)
        if isinstance(node, ast.JoinedStr):
            inside.update(node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (each.value if isinstance(each, ast.Constant) else "{}" for each in node.values)
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in inside:
            yield node.lineno, node.value


def _clumsy(text: str, phrases: dict[str, str]) -> list[str]:
    return [better for phrase, better in phrases.items() if re.search(phrase, text)]


def test_messages_are_plain() -> None:
    """A message tells what was expected, and has none of the phrases that are read twice."""
    found = {
        f"{path.relative_to(ROOT)}:{line}": (text, better)
        for path in MODULES
        for line, text in _texts(path)
        if (better := _clumsy(text, MESSAGES))
    }

    assert not found


def _docstrings(path: Path) -> Iterator[tuple[int, str]]:
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(parsed(path)):
        if isinstance(node, kinds) and (text := ast.get_docstring(node)):
            yield node.body[0].lineno, text


def test_docstrings_begin_with_a_whole_sentence() -> None:
    """The first line of a docstring ends a sentence, so that a list of functions can show it."""
    found = {
        f"{path.relative_to(ROOT)}:{line}": first
        for path in MODULES
        for line, text in _docstrings(path)
        if not (first := text.splitlines()[0]).endswith((".", ":"))
    }

    assert not found


def test_docstrings_are_plain() -> None:
    """A docstring has none of the phrases that are read twice."""
    found = {
        f"{path.relative_to(ROOT)}:{line}": better
        for path in MODULES
        for line, text in _docstrings(path)
        if (better := _clumsy(" ".join(text.split()), PROSE))
    }

    assert not found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_pages_are_plain(path: Path) -> None:
    """A page of the documentation has none of the phrases that are read twice."""
    text = re.sub(r"(?ms)^```.*?^```$", "", path.read_text("utf-8"))
    paragraphs = [" ".join(each.split()) for each in text.split("\n\n")]

    assert [(each, better) for each in paragraphs if (better := _clumsy(each, PROSE))] == []


@pytest.mark.parametrize(
    "text",
    [
        "x is 'y': say true or false",
        "the id is none",
        "it is gone, and nobody can tell why",
        "no job there; say --job-id",
        "what is there stays",
    ],
)
def test_clumsy_messages_are_seen(text: str) -> None:
    """The list of phrases finds the sentences that it was made for."""
    assert _clumsy(text, MESSAGES)
