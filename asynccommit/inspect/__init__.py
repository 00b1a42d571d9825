"""What is said of jobs: progress while they run, reports when they end, what they left behind."""
