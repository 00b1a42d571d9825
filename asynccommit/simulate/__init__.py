"""What a job commit would take: the engine as it is, over the model of a store, in virtual time.

Nothing is estimated but what is said to be: requests, refusals and waits are those of a commit that
happened, only that its store is a model and its time is counted, not waited for.
"""

from asynccommit.simulate.forecast import Forecast, simulate
from asynccommit.simulate.setup import Setup
from asynccommit.simulate.shown import shown

__all__ = ["Forecast", "Setup", "shown", "simulate"]
