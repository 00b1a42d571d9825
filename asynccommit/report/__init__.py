"""What people see of a commit: progress while it runs, and what it did."""
