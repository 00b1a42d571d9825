"""Run a load test within its bounds, and report."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Annotated, Any

from asynccommit.commit.meter import OnProgress, Progress
from asynccommit.engine.operation import workers_of
from asynccommit.errors import AsyncCommitError
from asynccommit.loadtest.forecast import forecast_million
from asynccommit.loadtest.measure import RequestBudget, Timings
from asynccommit.loadtest.report import LoadReport
from asynccommit.loadtest.scratch import LoadPlace, OtherRuns, OwnDirectory, remove_dead
from asynccommit.loadtest.settings import LoadSettings, plan_of
from asynccommit.loadtest.steps import LoadSteps
from asynccommit.options.checked import HIDDEN, Url, checked
from asynccommit.options.job import RATE, WORKERS, rate_among
from asynccommit.runtime.apart import apart
from asynccommit.runtime.host import Host, this_host
from asynccommit.stores.base import Store
from asynccommit.stores.policies.funnel import Wrapped
from asynccommit.stores.policies.traffic import traffic_of
from asynccommit.stores.registry import StoreSettings, close_store, open_store, wrap
from asynccommit.stores.urls import Address, parse_url


@checked
async def load_test(
    url: Url,
    settings: LoadSettings | None = None,
    *,
    storage_options: Annotated[Mapping[str, Any] | None, HIDDEN] = None,
    rate: Annotated[float | None, RATE] = None,
    max_concurrency: Annotated[int | None, WORKERS] = None,
    on_progress: OnProgress | None = None,
) -> LoadReport:
    """Measure what a store bears, in a directory of its own below ``url``.

    Small files are written and committed as a job, moved, verified and deleted; between these
    steps requests are sent as fast as the store accepts them. The directory is deleted at the end,
    also after an error or a cancellation. Directories of runs that were killed are deleted at the
    beginning.

    Args:
        url: a directory; it need not exist.
        settings: amounts and bounds.
        storage_options: credentials and the like for the store, under fsspec's names.
        rate: maximum number of requests per second; by default that of the storage options, or no
            limit.
        max_concurrency: maximum number of requests in flight; by default what suits the store.
        on_progress: called a few times a second, in a thread.

    Raises:
        OptionError: an argument or a storage option is wrong.
        AsyncCommitError: a step failed; the directory was deleted, or a note of the error names it.
    """
    address = parse_url(os.fspath(url))
    host, given = this_host(), storage_options or {}
    store_settings = StoreSettings(
        rng=host.rng,
        rate=rate_among(given) if rate is None else rate,
        in_flight=max_concurrency,
        options=given,
    )
    store = open_store(address, store_settings)
    try:
        run = LoadRun(store.store, store_settings, address, settings or LoadSettings(), host)
        report = await run.run(on_progress)
    finally:
        await close_store(store)
    return report


class LoadRun:
    """One load test on an open store.

    Args:
        store: the store, without policies; ``run`` must be called on its event loop.
        store_settings: settings of the policies.
        top: the directory below which the test runs.
        settings: amounts and bounds.
        host: clock and ids.
    """

    def __init__(
        self,
        store: Store,
        store_settings: StoreSettings,
        top: Address,
        settings: LoadSettings,
        host: Host,
    ) -> None:
        self._clock = asyncio.get_running_loop().time
        self._settings = settings
        self._plan = plan_of(settings, store.traits)
        self._timings = Timings()
        self._budget = RequestBudget(store)
        self._store = wrap(Wrapped(store, self._timings, self._budget), store_settings)
        self._place = LoadPlace(self._store, top, host)
        self._own = OwnDirectory(self._place)
        self._steps = LoadSteps(self._place, self._own.data, self._plan, self._budget)

    async def run(self, on_progress: OnProgress | None = None) -> LoadReport:
        """Run the test; see ``load_test``."""
        others = await remove_dead(self._place)
        begin, before = self._clock(), self._budget.sent
        tell = apart(on_progress)
        if tell is not None:
            self._budget.on_request = lambda sent: tell(self._progress(sent - before, begin))
        self._budget.most = before + self._plan.measured
        async with self._own.kept_alive(self._budget.lift):
            stopped = await self._measure()
            if tell is not None:
                await tell.end()
        return await self._report(others, stopped, before, self._clock() - begin)

    async def _measure(self) -> str:
        """Run the steps; return the bound that ended them early, or ``""``."""
        try:
            async with asyncio.timeout(self._settings.max_seconds) as timeout:
                await self._steps.run()
        except TimeoutError:
            if not timeout.expired():
                raise
            return "max_seconds"
        except AsyncCommitError:
            if not self._budget.is_spent:
                raise
            return "max_requests"
        return ""

    async def _report(
        self, others: OtherRuns, stopped: str, before: int, seconds: float
    ) -> LoadReport:
        steps, workers, traits = self._steps, workers_of(self._store), self._store.traits
        timed = sorted(self._timings.methods.items())
        methods = {name: times.figures() for name, times in timed}
        figures = (steps.times, steps.rates, methods, workers)
        forecast = None
        if self._settings.forecast:
            scheme = self._place.top.scheme
            forecast = await asyncio.to_thread(forecast_million, scheme, traits, *figures)
        return LoadReport(
            str(self._place.top),
            traits.name,
            steps.files,
            self._plan.files,
            workers,
            steps.times,
            methods,
            steps.rates,
            self._budget.sent - before,
            traffic_of(self._store).refused,
            seconds,
            stopped,
            forecast,
            tuple(others.removed),
            others.kept,
            self._own.left,
        )

    def _progress(self, sent: int, begin: float) -> Progress:
        return Progress("", self._steps.step, sent, None, self._clock() - begin)
