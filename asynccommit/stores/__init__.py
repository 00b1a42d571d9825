"""Stores: one contract, one folder for each service, shared policies."""
