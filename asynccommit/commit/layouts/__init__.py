"""Paths of a job: one layout for each committer."""
