"""The job commit protocols: task and job side, by rename and by upload."""
