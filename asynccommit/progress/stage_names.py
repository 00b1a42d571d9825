"""The names under which stages are shown."""

from __future__ import annotations

from asynccommit.commit.meter import OUTERMOST
from asynccommit.runtime.terminal import plain

STAGES = {
    OUTERMOST: "commit",
    "job_stage_load_manifests": "load manifests",
    "op_prepare_dir_ancestors": "check destinations",
    "job_stage_save_commit_record": "save the plan",
    "job_stage_settle": "check progress",
    "op_rename": "move replaced files aside",
    "job_stage_create_target_dirs": "make directories",
    "job_stage_rename_files": "rename files",
    "job_stage_optional_validate_output": "validate",
    "job_stage_decide_outcome": "decide",
    "job_stage_roll_back": "roll back",
    "job_stage_save_success_marker": "write _SUCCESS",
    "job_stage_cleanup": "clean up",
    "job_stage_abort": "abort",
    "rename_files": "move",
    "move_tree": "move",
    "delete_files": "delete",
    "delete_tree": "delete",
}
"""Hadoop's name of a stage -> the name that is shown."""


def stage_name(stage: str) -> str:
    """Return the name under which a stage is shown."""
    return STAGES.get(stage) or plain(stage).removeprefix("job_stage_").replace("_", " ")
