"""Run a notebook in a kernel of its own, as nbclient does, and read its outputs."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest


def run_notebook(
    cells: Sequence[str], folder: Path, environment: Mapping[str, str], *, timeout: float = 110
) -> list[list[dict[str, Any]]]:
    """Run cells in one kernel; return the outputs of each.

    Args:
        cells: the code of each.
        folder: the working directory.
        environment: variables of the kernel.
        timeout: seconds that a cell may take.

    Raises an error of nbclient if a cell fails.
    """
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    client = pytest.importorskip("nbclient", reason="nbclient is not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    made = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    runner = client.NotebookClient(
        made,
        timeout=timeout,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    runner.create_kernel_manager().kernel_spec.argv = _kernel()
    with warnings.catch_warnings():
        # Sockets that the client of the kernel leaves to the garbage collector.
        warnings.simplefilter("ignore")
        asyncio.run(runner.async_execute(env={**environment}))
    return [[dict(output) for output in cell.outputs] for cell in made.cells]


def _kernel() -> list[str]:
    return [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]


def text_of(outputs: Sequence[Mapping[str, Any]], kind: str = "text/plain") -> str:
    """Return what the outputs of a cell hold in one form."""
    return "\n".join(
        str(output["data"].get(kind, ""))
        for output in outputs
        if output["output_type"] in ("display_data", "execute_result")
    )
