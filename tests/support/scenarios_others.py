"""FileOutputCommitter, MapReduce's application master, Spark's coordinator and its file sink."""

from __future__ import annotations

from tests.support.scenarios import Row, Section

V1 = "commit/by_rename/test_file_output_v1.py"
V2 = "commit/by_rename/test_file_output_v2.py"
SINK = "streaming/test_log.py"
COORDINATOR = "spark/test_coordinator.py"

_SPARKS = "Spark's coordinator decides, here as anywhere: nothing of it is replaced"

OTHERS = Section(
    "Scenario",
    (46, 59),
    {
        46: Row(
            "FileOutputCommitter: recovery, upgrade, commits again, retries, aborts, both merge",
            {
                V1: "test_tasks_of_earlier_attempts_are_kept test_nothing_to_recover"
                " test_a_commit_is_repeatable test_version_1_tries_once"
                " test_abort_twice_and_after_a_success test_a_directory_that_came_meanwhile",
                V2: "test_recovery_after_an_upgrade test_a_task_commit_that_is_called_again"
                " test_failures_attempts",
                "compat/test_file_jobs.py": "test_tasks_of_an_earlier_attempt"
                " test_tasks_of_version_1_recovered_by_version_2 test_a_second_job_commit"
                " test_version_3_is_refused_by_both test_commit_job_of_tasks_of_both",
            },
            "a job of version 1 can be committed again, where Hadoop's fails",
        ),
        47: Row(
            "a stale heartbeat is waited for, a fresh one is not",
            {
                "mapreduce/test_commit_window.py": "test_a_fresh_answer_is_not_waited_for"
                " test_a_stale_answer_is_waited_for"
            },
        ),
        48: Row(
            "a commit ends: SUCCESS; it fails: FAIL",
            {"mapreduce/test_committer.py": "test_a_commit test_a_commit_that_fails"},
        ),
        49: Row(
            "an application master starts anew: what the markers make it do",
            {
                "mapreduce/test_markers.py": "test_the_table_of_a_start_up",
                "compat/test_am_markers.py": "test_the_table_is_hadoops"
                " test_a_staging_area_that_is_missing",
            },
        ),
        50: Row(
            "two attempts ask, one commits",
            {"spark/test_concurrency.py": "test_speculation_with_both_attempts_finishing"},
        ),
        51: Row(
            "the first attempt fails, the next may commit",
            {"spark/test_failures.py": "test_failed_task_is_run_again"},
        ),
        52: Row(
            "who is denied waits for the attempt that may commit",
            {COORDINATOR: "test_who_is_denied_waits_for_the_holder"},
            _SPARKS,
        ),
        53: Row(
            "an attempt that fails frees the lock, if it held it",
            {COORDINATOR: "test_who_frees_the_lock"},
            _SPARKS,
        ),
        54: Row(
            "an attempt that failed is never allowed",
            {COORDINATOR: "test_an_attempt_that_failed"},
            _SPARKS,
        ),
        55: Row(
            "attempts of different stage attempts are distinct",
            {COORDINATOR: "test_attempts_of_a_stage_that_runs_again"},
            _SPARKS + "; ours are named after Spark's own, which differ",
        ),
        56: Row(
            "a stage ends: its state goes",
            {COORDINATOR: "test_a_stage_that_has_ended"},
            _SPARKS,
        ),
        57: Row(
            "the sink's log: names, compaction, windows, expiry, retention, readers meanwhile",
            {
                "streaming/test_batches.py": "test_names test_compaction_every_third"
                " test_derived_interval test_what_is_read_covers_all"
                " test_what_expires_is_not_read",
                "streaming/test_entries.py": "test_samples_are_read_and_written_the_same"
                " test_round_trip",
                SINK: "test_retention_is_applied_when_compacting test_expiry_waits_for_its_delay"
                " test_reading_what_has_just_expired",
                "spark/test_sink_log.py": "test_batch_numbers_are_reckoned_as_spark_does"
                " test_log_is_the_same_to_the_byte",
            },
        ),
        58: Row(
            "the sink: replays, aborts, a second query, a table below a log",
            {
                SINK: "test_batch_written_again_by_its_query test_larger_batch_of_another"
                " test_abort_deletes_what_no_batch_lists",
                "streaming/test_log_refused.py": "test_table_inside_of_a_log",
                "spark/test_sink_log.py": "test_stock_sink_and_ours_continue_each_other",
            },
        ),
        59: Row(
            "dynamic overwrite: only what is written to; a failure loses nothing; other locations",
            {
                "spark/test_tables.py": "test_dynamic_overwrite_replaces_the_partitions_it_writes"
                " test_dynamic_overwrite_of_nothing_touches_nothing"
                " test_dynamic_overwrite_that_fails_loses_nothing test_custom_partition_location"
                " test_overwrite_with_a_custom_location"
            },
            "a rename that answers false is an error of the store here",
        ),
    },
)
