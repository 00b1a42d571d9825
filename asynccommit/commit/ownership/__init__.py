"""One owner of a commit at a time: lease, takeover and outcome."""
