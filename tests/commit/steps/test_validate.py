"""Validation: a sample that is asked for by name, and errors that say nothing of the files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from blockbuster import BlockBuster

from asynccommit.commit.by_rename.committer import ManifestCommitter
from asynccommit.errors import CommitError, DeniedError, ValidationError
from asynccommit.stores.policies.funnel import Call, Op
from tests.support.faults import Fault, Faults
from tests.support.jobs import committer, run_task


async def forty(dest: Path, policy: Faults, sample: int) -> ManifestCommitter:
    """Return a job whose only task committed forty files."""
    job = committer(dest, policy, validate_sample=sample)
    await job.setup_job()
    await run_task(job, 0, {f"d{n % 4}/f{n:02}": str(n) for n in range(40)})
    return job


@pytest.mark.parametrize("sample, asked", [(1, 1), (7, 7), (1000, 40)])
async def test_so_many_files_are_asked_for(tmp_path: Path, sample: int, asked: int) -> None:
    """As many different files as the option says are looked at after the renames, or all."""
    seen = Faults()
    job = await forty(tmp_path / "out", seen, sample)
    await job.commit_job()
    last = max(i for i, op in enumerate(seen.seen) if op.name == "rename" and "/d" in op.args[1])
    heads = [op.path for op in seen.seen[last:] if op.name == "head" and "/f" in op.path]

    assert len(set(heads)) == len(heads) == asked


class Spoil(Faults):
    """Changes one file as soon as it has been renamed."""

    def around(self, call: Call) -> Call:
        """See ``Policy.around``."""
        inner = super().around(call)

        async def spoiled(op: Op) -> Any:
            answer = await inner(op)
            if op.name == "rename" and op.args[1].endswith("f13"):
                Path(op.args[1]).write_text("longer than it was")
            return answer

        return spoiled


async def test_a_file_of_the_sample_that_differs_fails_the_job(
    tmp_path: Path, blockbuster: BlockBuster
) -> None:
    """What is not as committed is named, and there is no marker."""
    blockbuster.deactivate()
    job = await forty(tmp_path / "out", Spoil(), 40)
    with pytest.raises(ValidationError, match="f13 has 18 bytes, but its manifest has 2"):
        await job.commit_job()

    assert not (tmp_path / "out/_SUCCESS").exists()


async def test_a_listing_that_fails_says_nothing_of_the_files(tmp_path: Path) -> None:
    """An error of the store is no difference between what is there and what was committed."""
    faults = Faults()
    job = committer(tmp_path / "out", faults, validate=True)
    await job.setup_job()
    await run_task(job, 0, {"d/f": "x"})
    faults.rules.append(Fault("list", DeniedError, match="/out/d", times=1))
    with pytest.raises(CommitError, match="/out/d") as caught:
        await job.commit_job()

    assert caught.value.stage == "job_stage_optional_validate_output"
    assert not isinstance(caught.value, ValidationError)
