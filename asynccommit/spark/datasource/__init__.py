"""Python Data Source: options, rows, files, tasks, jobs and streams."""
