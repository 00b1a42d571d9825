"""Notebooks in kernels of their own, as nbclient runs them, and their outputs."""

from __future__ import annotations

import asyncio
import math
import sys
import warnings
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from html import escape
from pathlib import Path
from typing import Any

import pytest

Outputs = list[dict[str, Any]]


class Notebook:
    """A notebook whose kernel runs."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.cells: list[tuple[str, Outputs]] = []

    @property
    def pid(self) -> int:
        """Return the process id of the kernel."""
        return int(self.client.km.provisioner.pid)

    async def run(self, code: str) -> Outputs:
        """Run a cell; return its outputs. Raises an error of nbclient if it fails."""
        made = pytest.importorskip("nbformat").v4.new_code_cell(code)
        self.client.nb.cells.append(made)
        try:
            await self.client.async_execute_cell(made, len(self.client.nb.cells) - 1)
        finally:
            outputs = [dict(output) for output in made.outputs]
            self.cells.append((code, outputs))
        return outputs


@asynccontextmanager
async def notebook(
    folder: Path,
    environment: Mapping[str, str],
    *,
    python: str = sys.executable,
    timeout: float = 110,
) -> AsyncIterator[Notebook]:
    """Start a kernel; end it on leaving.

    Args:
        folder: the working directory.
        environment: variables of the kernel.
        python: the interpreter of the kernel.
        timeout: seconds that a cell may take.
    """
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    client = nbclient.NotebookClient(
        nbformat.v4.new_notebook(),
        timeout=math.ceil(timeout),
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    spec = client.create_kernel_manager().kernel_spec
    spec.argv = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    with warnings.catch_warnings():
        # Sockets that the client of the kernel leaves to the garbage collector.
        warnings.simplefilter("ignore")
        async with client.async_setup_kernel(env={**environment}):
            yield Notebook(client)


def run_notebook(
    cells: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> list[Outputs]:
    """Run cells in one kernel; return the outputs of each."""

    async def run() -> list[Outputs]:
        async with notebook(folder, environment) as running:
            return [await running.run(cell) for cell in cells]

    return asyncio.run(run())


def text_of(outputs: Outputs, kind: str = "text/plain") -> str:
    """Return what the outputs of a cell show in one form, and what it printed."""
    texts = [
        str(output["data"].get(kind, ""))
        for output in outputs
        if output["output_type"] in ("display_data", "execute_result")
    ]
    texts += [output["text"] for output in outputs if output["output_type"] == "stream"]
    texts += [output["evalue"] for output in outputs if output["output_type"] == "error"]
    return "\n".join(texts)


def page_of(cells: Sequence[tuple[str, Outputs]]) -> str:
    """Return a page that shows cells as a notebook does."""
    parts = []
    for code, outputs in cells:
        parts.append(f"<pre class=code>{escape(code.strip())}</pre>")
        for output in outputs:
            data = output.get("data", {})
            if "text/html" in data:
                parts.append(f"<div class=out>{data['text/html']}</div>")
            else:
                text = data.get("text/plain") or output.get("text") or output.get("evalue", "")
                parts.append(f"<pre class=out>{escape(text.strip())}</pre>")
    style = (
        "body{font:14px system-ui,sans-serif;margin:1.5rem;max-width:62rem}"
        "pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.2rem 0}"
        ".code{background:#f4f4f6;border:1px solid #ddd;padding:.6rem;margin-top:1rem}"
        ".out{padding:.3rem .6rem}"
    )
    return f"<!doctype html><meta charset=utf-8><style>{style}</style>{''.join(parts)}"
