"""Policies around every request to a store: retry, rate, lost replies, one funnel."""
