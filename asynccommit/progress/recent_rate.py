"""The rate of the last seconds."""

from __future__ import annotations

from collections import deque

WINDOW = 10.0
"""Seconds that a rate is measured over."""


class RecentRate:
    """The number of items a second in the last ``WINDOW`` seconds.

    Args:
        began: when the first item was begun.
    """

    def __init__(self, began: float) -> None:
        self._points = deque([(began, 0)])

    def note(self, seconds: float, done: int) -> None:
        """Record how many items are done at this time."""
        self._points.append((seconds, done))
        # One point before the window stays: the items since then are divided by all of the time.
        while len(self._points) > 2 and self._points[1][0] <= seconds - WINDOW:
            self._points.popleft()

    def at(self, seconds: float) -> float:
        """Return the items a second at this time, the last note's or later."""
        begin, before = self._points[0]
        for earlier, done in self._points:
            if earlier > seconds - WINDOW:
                break
            begin, before = earlier, done
        took = seconds - begin
        return max(0.0, (self._points[-1][1] - before) / took) if took > 0 else 0.0
