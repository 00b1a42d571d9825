"""HTTP for the object stores: clients, tokens, options."""
