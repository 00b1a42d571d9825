"""What surprises in Spark's Python Data Source, by experiment, on PySpark 4.3."""

from __future__ import annotations

from tests.support.scenarios import Row, Section

SOURCE = "spark/datasource/test_source.py"
JOBS = "spark/test_datasource_jobs.py"
STREAMS = "spark/test_datasource_streams.py"

SURPRISES = Section(
    "Surprise",
    (1, 16),
    {
        1: Row(
            "there is no callback for an attempt that failed, was killed or denied",
            {
                SOURCE: "test_task_that_fails_and_runs_again",
                JOBS: "test_attempt_that_was_killed",
            },
        ),
        2: Row(
            "whether an attempt may commit is asked after it has written",
            {
                SOURCE: "test_speculation",
                JOBS: "test_attempt_that_nobody_names",
            },
        ),
        3: Row(
            "there is no message of a partition without one",
            {
                SOURCE: "test_abort_while_tasks_run",
                STREAMS: "test_abort_without_messages",
            },
        ),
        4: Row(
            "an attempt that fails is followed by another with the same writer",
            {
                SOURCE: "test_task_that_fails_and_runs_again",
                JOBS: "test_task_that_fails",
            },
        ),
        5: Row(
            "abort is called while tasks run, and more begin",
            {
                SOURCE: "test_abort_while_tasks_run",
                JOBS: "test_attempt_that_starts_too_late"
                " test_attempt_that_outlives_its_job"
                " test_abort_looks_again",
            },
        ),
        6: Row(
            "killed tasks run on for seconds, and then no handler runs",
            {
                SOURCE: "test_task_that_fails_and_runs_again",
                JOBS: "test_attempt_that_was_killed test_abort_looks_again",
            },
        ),
        7: Row(
            "of two attempts the one that loses ends, or begins, after the commit",
            {
                SOURCE: "test_speculation",
                JOBS: "test_attempt_that_nobody_names"
                " test_attempt_that_starts_too_late"
                " test_attempt_that_outlives_its_job",
            },
        ),
        8: Row(
            "a task must answer with a message",
            {
                SOURCE: "test_one_token_in_batch",
            },
        ),
        9: Row(
            "abort follows a commit that failed, or died, half-way",
            {
                SOURCE: "test_commit_that_dies_half_way test_stream_whose_commit_fails",
                JOBS: "test_abort_twice_and_after_a_commit",
                STREAMS: "test_batch_that_was_published_and_not_listed",
            },
        ),
        10: Row(
            "a worker that dies counts as a failure",
            {
                SOURCE: "test_task_that_fails_and_runs_again",
                JOBS: "test_attempt_that_was_killed",
            },
        ),
        11: Row(
            "a stream's writer is made anew for each commit, and a batch that failed comes again",
            {
                SOURCE: "test_stream test_stream_whose_commit_fails",
                STREAMS: "test_batch_that_comes_again",
            },
        ),
        12: Row(
            "a batch that is committed is committed again, if Spark died before it noted it",
            {
                SOURCE: "test_stream test_stream_that_dies_before_its_batch_is_listed",
                STREAMS: "test_batch_that_comes_again",
            },
        ),
        13: Row(
            "a commit has no limit of time",
            {
                SOURCE: "test_one_token_in_batch",
            },
        ),
        14: Row(
            "rows come in small batches of Arrow's",
            {
                SOURCE: "test_messages_are_small",
            },
        ),
        15: Row(
            "messages go through the driver, and are small",
            {
                SOURCE: "test_messages_are_small",
            },
        ),
        16: Row(
            "the Python of workers is the one that PYSPARK_PYTHON names",
            {
                SOURCE: "test_one_token_in_batch",
            },
        ),
    },
)
