"""The stages of a job commit that completes uploads."""
