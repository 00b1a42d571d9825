"""Policies around every request to a store, and their one funnel."""
