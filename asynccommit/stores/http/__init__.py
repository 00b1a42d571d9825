"""HTTP as the object stores need it: clients, tokens, options."""
