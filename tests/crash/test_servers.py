"""The set-up of a job finds what a server of S3 lacks, and a wrong answer of it is found."""

from __future__ import annotations

import pytest

from asynccommit.stores.s3.abilities import Abilities, Trial
from asynccommit.testing.models.s3 import client
from asynccommit.testing.models.virtual_loop import run_virtual
from tests.crash import servers
from tests.crash.simulator import idle, run
from tests.support.strikes import counted

REFUSED = [rule for rule, named in servers.LACKS.items() if named]
ALL = Abilities(*[True] * len(Abilities._fields))


def test_jobs_on_servers_that_lack_something() -> None:
    """A set-up refuses the server, or the job is whole; deaths and storms change no answer."""
    simulated = run("servers", range(24))

    assert simulated.failures == ()
    assert idle([simulated]) == []


@pytest.mark.parametrize("rule", REFUSED)
def test_a_probe_that_wrongly_says_yes_is_found(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a server that lacks what it claims, a file of another is replaced, or one comes back."""

    async def says_yes(trial: Trial) -> Abilities:
        return ALL

    monkeypatch.setattr(client, "find_abilities", says_yes)
    with counted() as strikes:
        problems = run_virtual(servers.violations([*servers.LACKS].index(rule)))

    assert strikes["end" if rule == "abort_ends" else "rival"] == 1
    assert len(problems) > 1, problems
