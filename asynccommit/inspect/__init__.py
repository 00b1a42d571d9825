"""Inspection of jobs: progress, reports, and what they left behind."""
