"""S3A's committers, and the directory and partitioned ones that Netflix wrote before them."""

from __future__ import annotations

from tests.support.scenarios import Row, Section

MAGIC = "commit/by_upload/test_magic.py"
STAGING = "commit/by_upload/test_staging.py"
JOBS = "commit/by_upload/test_committer.py"
TASKS = "commit/test_task.py"
OPTIONS = "options/test_uploads.py"
POINTS = "crash/test_uploads_points.py"

S3A = Section(
    "Scenario",
    (1, 45),
    {
        1: Row(
            "a task and its job commit: files, a marker with committer and id, nothing else left",
            {MAGIC: "test_task_commit test_magic_end_to_end", JOBS: "test_a_job"},
        ),
        2: Row(
            "a second job attempt recovers no task, has places of its own, aborts its own uploads",
            {MAGIC: "test_attempts_of_a_job", JOBS: "test_another_attempt_of_the_job"},
            "there is no recoverTask to refuse",
        ),
        3: Row(
            "a task attempt that is committed again is not found",
            {
                MAGIC: "test_second_commit_of_an_attempt",
                STAGING: "test_second_commit_of_an_attempt",
                JOBS: "test_committing_again",
            },
            "also with tracking in memory, where Hadoop commits an empty set in its place",
        ),
        4: Row(
            "two attempts of a task commit: the second's file only, and one name in the marker",
            {
                MAGIC: "test_last_attempt_counts",
                STAGING: "test_last_attempt_counts",
                JOBS: "test_two_attempts_of_a_task",
            },
        ),
        5: Row(
            "a job commit fails, the second succeeds",
            {
                JOBS: "test_a_failed_commit_is_committed_again test_committing_again",
                POINTS: "test_a_crash_at_every_write",
            },
            "the third says that all is done already, where Hadoop finds no directory",
        ),
        6: Row(
            "no output: success, and a marker without names",
            {
                MAGIC: "test_task_without_files",
                STAGING: "test_task_without_files",
                JOBS: "test_no_output",
            },
        ),
        7: Row(
            "output that is a directory: its tree is kept",
            {STAGING: "test_several_files", JOBS: "test_a_tree_is_kept"},
        ),
        8: Row(
            "abort of a task and a job without work: no error",
            {MAGIC: "test_abort_without_work", JOBS: "test_aborting_nothing"},
        ),
        9: Row(
            "a task that is not committed when its job is: its uploads are aborted",
            {
                JOBS: "test_uploads_of_killed_tasks test_uploads_that_are_to_be_left_alone",
                "crash/test_upload_tasks.py": "test_task_that_dies",
            },
        ),
        10: Row(
            "abort of a task, then of its job: no directories, no uploads",
            {MAGIC: "test_abort_with_open_files", JOBS: "test_an_abort_takes_everything"},
        ),
        11: Row(
            "abort on a store that fails: an error, and nothing is visible",
            {MAGIC: "test_abort_of_a_failing_store", JOBS: "test_an_abort_that_fails"},
        ),
        12: Row(
            "abort of a job whose tasks were not aborted: their uploads are",
            {STAGING: "test_abort_of_a_killed_task", JOBS: "test_an_abort_takes_everything"},
        ),
        13: Row(
            "two tasks write subdirectories at once: both trees are there",
            {MAGIC: "test_tasks_at_once", JOBS: "test_a_job"},
        ),
        14: Row(
            "a task's writer: what is written is visible after the commit only",
            {TASKS: "test_writing_by_and_by"},
            "there is no output format; files are written by name",
        ),
        15: Row(
            "another process aborts a task: its uploads are gone",
            {MAGIC: "test_abort_by_another_process"},
        ),
        16: Row(
            "two jobs in sibling directories: the commit of one leaves the other's uploads",
            {JOBS: "test_jobs_in_sibling_directories", TASKS: "test_jobs_of_siblings"},
        ),
        17: Row(
            "two jobs with one destination: both commit, and all files are there",
            {
                JOBS: "test_jobs_in_sibling_directories test_two_jobs_of_one_destination",
                TASKS: "test_two_jobs_of_one_destination",
            },
            "whatever abort.pending.uploads says: none but a job's own are aborted",
        ),
        18: Row(
            "an id is required, and none is given: refused",
            {TASKS: "test_id_that_is_required"},
            "a task is opened with its job's id, so none can have one that it made up itself",
        ),
        19: Row(
            "the committer's id comes before Spark's, and that before the job's",
            {TASKS: "test_id_of_the_options", OPTIONS: "test_order_of_ids"},
        ),
        20: Row(
            "no threads, one or several: the same result",
            {JOBS: "test_workers", TASKS: "test_number_of_threads"},
        ),
        21: Row(
            "staging, one file: one upload, a set named by the task, no object",
            {STAGING: "test_one_file"},
        ),
        22: Row(
            "staging, an empty file: one upload; with Netflix' rules none",
            {STAGING: "test_empty_file test_empty_file_of_netflix"},
        ),
        23: Row("staging, several files: all are pending", {STAGING: "test_several_files"}),
        24: Row("an upload cannot be begun: an error", {STAGING: "test_failed_commit"}),
        25: Row(
            "a second part, or a second file, fails: all that was begun is aborted",
            {STAGING: "test_failed_commit"},
        ),
        26: Row(
            "upload and abort fail: the error is the upload's",
            {STAGING: "test_failed_abort_of_a_failed_commit"},
        ),
        27: Row("abort of a task: no upload, no local directory", {STAGING: "test_abort"}),
        28: Row(
            "4 tasks of 3 files: all are completed, and the job's directory is gone",
            {
                STAGING: "test_staging_end_to_end",
                JOBS: "test_a_job",
                POINTS: "test_a_crash_at_every_write",
            },
        ),
        29: Row(
            "the sixth of 12 completions fails: five files are deleted, seven uploads aborted",
            {JOBS: "test_a_completion_fails test_a_completion_fails_and_all_is_kept"},
            "by option; else all is kept, to be resumed or rolled back",
        ),
        30: Row("abort of a job: all uploads", {JOBS: "test_an_abort_takes_everything"}),
        31: Row("a conflict mode that is none: refused", {OPTIONS: "test_bad_values_name_the_key"}),
        32: Row(
            "directory: fail refuses what is there, append and replace do not; a file never passes",
            {
                TASKS: "test_conflict_of_the_options",
                JOBS: "test_what_a_mode_replaces test_replaced_files_go_last"
                " test_a_file_where_the_destination_is_to_be test_fail_is_checked_twice",
            },
            "fail is checked again at commit, and nothing is deleted before all is completed",
        ),
        33: Row(
            "partitioned, a task: fail looks before it uploads, append and replace do not look",
            {
                STAGING: "test_partition_that_is_there test_modes_without_a_probe",
                JOBS: "test_partitioned_fail_wants_only_its_partitions_free",
            },
        ),
        34: Row(
            "partitioned, the job: replace deletes the leaves with new data, the others nothing",
            {
                JOBS: "test_what_a_mode_replaces test_replaced_files_go_last"
                " test_replaced_files_cannot_be_deleted test_a_root_file_makes_no_partition"
                " test_partitioned_fail_wants_only_its_partitions_free",
                POINTS: "test_a_crash_at_every_write",
            },
            "if the deletion fails the job is committed already, and that is what the error says",
        ),
        35: Row(
            "hidden files are not committed; which directory is a partition",
            {
                STAGING: "test_hidden_files test_what_is_a_conflict",
                "commit/by_upload/test_load_sets.py": "test_hidden_files_are_no_sets",
            },
        ),
        36: Row(
            "the id in a name: before the first dot, once, refused without a name",
            {
                STAGING: "test_unique_names",
                "formats/test_unique_names.py": "test_add_uuid"
                " test_add_uuid_needs_a_name_and_an_id",
            },
        ),
        37: Row(
            "thousands of tasks: requests grow with them, the marker names a hundred files",
            {JOBS: "test_the_marker_names_a_hundred test_requests_grow_with_the_tasks"},
            "that memory does not grow is measured: `python -m bench s3-flat`",
        ),
        38: Row(
            "paths below a magic directory: where their files go, and which have no place",
            {"formats/test_magic_paths.py": "test_final_path test_no_file"},
        ),
        39: Row(
            "a magic file: an empty marker with the length, a pending file, the file only later",
            {MAGIC: "test_written_file test_magic_end_to_end"},
        ),
        40: Row(
            "marker and pending file are moved: they say the same",
            {MAGIC: "test_renamed_pending_file"},
        ),
        41: Row(
            "what is to be taken back is gone: no error; or cannot be read: one, after all others",
            {
                MAGIC: "test_abort_without_work test_abort_with_a_corrupt_pending_file",
                JOBS: "test_aborting_nothing test_a_corrupt_pending_file_is_said"
                " test_a_rollback_of_what_is_gone",
            },
        ),
        42: Row("magic is disabled: refused", {MAGIC: "test_magic_that_is_disabled"}),
        43: Row(
            "the clean-up is disabled: the job's directory stays",
            {MAGIC: "test_kept_magic_directory", JOBS: "test_clean_up_is_switched_off"},
        ),
        44: Row(
            "failures that pass: each file is there once",
            {
                MAGIC: "test_set_that_was_saved_without_an_answer",
                STAGING: "test_set_that_was_saved_without_an_answer",
                JOBS: "test_faults_that_pass",
                "faults/test_upload_jobs.py": "test_jobs_in_a_storm",
            },
        ),
        45: Row(
            "one destination twice: refused",
            {MAGIC: "test_two_files_of_one_place", JOBS: "test_one_file_twice"},
            "across the sets of a job too",
        ),
    },
)
