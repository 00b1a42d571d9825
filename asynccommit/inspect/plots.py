"""Plots of a commit as SVG, drawn by matplotlib.

The SVG is for a page: texts are texts, in the font and the colour of the page. Names are drawn as
they are; matplotlib escapes them, and none is read as a formula.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from asynccommit.errors import UnsupportedError
from asynccommit.progress.stage_names import stage_name
from asynccommit.results import Partition, StageTime, Timeline
from asynccommit.runtime.terminal import count_of, plain, show_bytes, show_short

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")
REFUSED = "#cc3311"
PERCENTILES = (50, 90, 99)
MAX_ROWS = 15
"""Number of partitions and methods in a plot; tables have more."""

_INK = "#123456"
"""The colour of texts and axes while drawing; the page's own takes its place."""

_UNUSED_ID = re.compile(
    r' id="(?:figure|axes|patch|text|matplotlib\.axis|[xy]tick|line2d|legend|'
    r'PathCollection|LineCollection|StepPatch)[^"]*"'
)
_WIDTH = 9.0
_ROW = 0.3
_LONGEST = 44  # letters of a name beside a plot
_STYLE: Any = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "text.color": _INK,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "font.size": 10,
}


def stages_plot(stages: Sequence[StageTime]) -> str:
    """Return the stages on a time line, one row each."""
    with _figure("stages", len(stages)) as (figure, axes):
        whole = max(stage.begin + stage.seconds for stage in stages)
        for row, stage in enumerate(stages):
            colour = COLOURS[row % len(COLOURS)]
            axes.barh(row, max(stage.seconds, whole / 400), left=stage.begin, color=colour)
            axes.annotate(
                show_short(stage.seconds),
                (stage.begin + stage.seconds, row),
                (5, 0),
                textcoords="offset points",
                va="center",
            )
        _rows(axes, [stage_name(stage.name) for stage in stages])
        axes.set_xlim(0, whole * 1.12 or 1)
        axes.set_xlabel("seconds since the commit began")
        return _svg(figure, "stages", "stages of the commit on a time line")


def rate_plot(timeline: Timeline) -> str:
    """Return requests a second over time, refusals and the limit."""
    with _figure("rate", 8) as (figure, axes):
        width = timeline.width
        edges = [index * width for index in range(len(timeline.sent) + 1)]
        rates = [count / width for count in timeline.sent]
        axes.stairs(rates, edges, fill=True, color=COLOURS[0], alpha=0.75, label="sent")
        if any(timeline.refused):
            refused = [count / width for count in timeline.refused]
            axes.stairs(refused, edges, fill=True, color=REFUSED, label="refused by the store")
        if any(timeline.limits):
            limits = [limit or float("nan") for limit in timeline.limits]
            axes.stairs(
                limits, edges, baseline=None, color=_INK, linestyle="--", label="limit in force"
            )
        axes.set_xlim(0, edges[-1])
        axes.set_ylim(bottom=0)
        axes.set_xlabel("seconds since the commit began")
        axes.set_ylabel("requests a second")
        axes.grid(axis="y", alpha=0.25)
        _legend(axes)
        return _svg(figure, "rate", "requests a second over time")


def latency_plot(percentiles: Mapping[str, Sequence[float]]) -> str:
    """Return the latency percentiles of each method on a logarithmic axis."""
    methods = list(percentiles)[:MAX_ROWS]
    with _figure("latency", len(methods)) as (figure, axes):
        for row, method in enumerate(methods):
            values = [1000 * value for value in percentiles[method]]
            axes.plot([values[0], values[-1]], [row, row], color=COLOURS[0], alpha=0.35, lw=3)
        for index, percent in enumerate((*PERCENTILES, 100)):
            axes.plot(
                [1000 * percentiles[method][index] for method in methods],
                range(len(methods)),
                "o",
                color=COLOURS[(0, 3, 1, 5)[index]],
                label="slowest" if percent == 100 else f"p{percent}",
            )
        _rows(axes, methods)
        axes.set_xscale("log")
        axes.xaxis.get_major_locator().set_params(subs=(1.0, 2.0, 5.0))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_formatter(lambda value, _: "")  # by default it is a formula
        axes.set_xlabel("milliseconds")
        axes.grid(axis="x", alpha=0.25)
        _legend(axes)
        return _svg(figure, "latency", "latency percentiles by kind of request")


def partitions_plot(partitions: Sequence[Partition]) -> str:
    """Return the largest directories by bytes, with their files."""
    shown = [one for one in partitions if one.path][:MAX_ROWS]
    with _figure("partitions", len(shown)) as (figure, axes):
        largest = max((one.bytes for one in shown), default=0)
        axes.barh(range(len(shown)), [one.bytes for one in shown], color=COLOURS[2])
        for row, one in enumerate(shown):
            axes.annotate(
                f"{show_bytes(one.bytes)}, {count_of(one.files, 'file')}",
                (one.bytes, row),
                (5, 0),
                textcoords="offset points",
                va="center",
            )
        _rows(axes, [one.path for one in shown])
        axes.set_xlim(0, largest * 1.3 or 1)
        axes.xaxis.set_visible(False)
        axes.spines["bottom"].set_visible(False)
        return _svg(figure, "partitions", "the largest directories by bytes")


@contextmanager
def _figure(name: str, rows: int) -> Iterator[tuple[Any, Any]]:
    """Yield a figure and its axes, drawn in the style of the page.

    Raises ``UnsupportedError`` without matplotlib.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            "matplotlib, which draws the plots of a page, is not installed: "
            "pip install 'asynccommit[report]'"
        ) from error
    # The salt makes the ids of one plot differ from those of the others on a page.
    with rc_context({**_STYLE, "svg.hashsalt": f"asynccommit-{name}"}):
        figure = Figure(figsize=(_WIDTH, 0.9 + _ROW * max(rows, 2)), layout="constrained")
        yield figure, figure.add_subplot()


def _rows(axes: Any, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), [_short(name) for name in names])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.5, -0.5)


def _short(name: str) -> str:
    text = plain(name)
    return text if len(text) <= _LONGEST else f"{text[:12]}…{text[13 - _LONGEST :]}"


def _legend(axes: Any) -> None:
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=4, frameon=False, borderpad=0)


def _svg(figure: Any, name: str, label: str) -> str:
    """Return a figure as one element, in the colours and the font of its page."""
    written = io.StringIO()
    nothing = {"Creator": None, "Date": None, "Format": None, "Type": None}
    figure.savefig(written, format="svg", transparent=True, metadata=nothing)
    text = written.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = text.replace(_INK, "currentColor")
    text = re.sub(r"font: ([0-9.]+px) [^;\"]*", r"font: \1 system-ui, sans-serif", text)
    # Ids that nothing refers to would be on the page once for each plot.
    text = _UNUSED_ID.sub("", text)
    head = f'<svg role="img" aria-label="{label}" data-plot="{name}"'
    return re.sub(r'<svg([^>]*?) width="[^"]*"', rf"{head}\1", text, count=1).replace(
        ' height="', ' data-height="', 1
    )
