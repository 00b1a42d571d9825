"""Stores: one contract, one folder for each service, and the policies around them."""
