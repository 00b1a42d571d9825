"""The manual page, made from the help of the commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from asynccommit.version import __version__

_COMMON = ("json", "quiet", "verbose", "debug", "help")
"""Options that every command has; the page explains them once."""

_PLACES = (
    ("ASYNCCOMMIT_PROGRESS", "off shows no progress, in notebooks either."),
    ("ASYNCCOMMIT_TRACEBACK", "full keeps all frames of the errors of blocking calls."),
    ("AZURE_*, GOOGLE_*, AWS_*", "credentials, under the names of each provider's own tools."),
)


def man_page(command: Any) -> str:
    """Return the text of asynccommit(1), in the macros of man.

    Args:
        command: the program, as click knows it.
    """
    return "\n".join(_lines(command)) + "\n"


def _lines(program: Any) -> Iterator[str]:
    # Without a date the page is the same whenever it is built.
    yield f'.TH ASYNCCOMMIT 1 "" "asynccommit {_text(__version__)}" "User Commands"'
    yield from _section("NAME", f"asynccommit \\- {_text(_summary(program)).rstrip('.').lower()}")
    yield ".SH SYNOPSIS"
    yield ".B asynccommit"
    yield "\\fICOMMAND\\fR [\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]"
    yield from _section("DESCRIPTION", *_paragraphs(program.help))
    yield ".SH COMMANDS"
    leaves = list(_leaves((), program))
    for words, command in leaves:
        yield from _command(words, command)
    yield ".SH COMMON OPTIONS"
    for option in leaves[0][1].params:
        if option.name in _COMMON:
            yield from _option(option)
    yield from _item("\\fB\\-h\\fR, \\fB\\-\\-help\\fR", "Show the help of a command.")
    yield from _section("EXIT STATUS", *_paragraphs(program.epilog))
    yield ".SH ENVIRONMENT"
    for name, text in _PLACES:
        yield from _item(f"\\fB{_text(name)}\\fR", text)


def _leaves(words: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    children = getattr(command, "commands", None)
    if children is None:
        yield words, command
        return
    for name, child in children.items():
        if not child.hidden:
            yield from _leaves((*words, name), child)


def _command(words: tuple[str, ...], command: Any) -> Iterator[str]:
    options = [one for one in command.params if one.param_type_name == "option"]
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    named = " ".join(_argument(one) for one in arguments)
    yield f".SS {_text(' '.join(words))} {named}".rstrip()
    for paragraph in _paragraphs(command.help):
        yield ".PP"
        yield paragraph
    for option in options:
        if option.name not in _COMMON and not option.hidden:
            yield from _option(option)


def _argument(argument: Any) -> str:
    name = f"\\fI{_text(argument.metavar or argument.name.upper())}\\fR"
    return name if argument.required else f"[{name}]"


def _option(option: Any) -> Iterator[str]:
    names = ", ".join(f"\\fB{_text(name)}\\fR" for name in (*option.opts, *option.secondary_opts))
    value = ""
    if not option.is_flag and not option.count:
        value = f" \\fI{_text(option.metavar or option.name.upper())}\\fR"
    yield from _item(names + value, option.help or "")


def _item(title: str, text: str) -> Iterator[str]:
    yield ".TP"
    yield title
    yield _line(text)


def _section(title: str, *paragraphs: str) -> Iterator[str]:
    yield f".SH {title}"
    for number, paragraph in enumerate(paragraphs):
        if number:
            yield ".PP"
        yield paragraph


def _paragraphs(text: str | None) -> list[str]:
    return [_line(paragraph) for paragraph in (text or "").split("\n\n") if paragraph.strip()]


def _summary(command: Any) -> str:
    return str(command.help or "").partition("\n")[0]


def _line(text: str) -> str:
    """Return a paragraph as one line; a leading dot or quote would be a macro."""
    line = _text(" ".join(text.split()))
    return f"\\&{line}" if line.startswith((".", "'")) else line


def _text(text: str) -> str:
    """Return text such that man prints it as it is."""
    return text.replace("\\", "\\e").replace("-", "\\-")
