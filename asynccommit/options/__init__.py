"""Options of jobs and of stores: their fields, defaults and checks."""
