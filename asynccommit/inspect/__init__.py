"""Inspection of jobs: progress while they run, reports, and what they left behind."""
