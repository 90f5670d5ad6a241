"""Proposals: changes that an agent wants to make to the memory, and that the user decides about."""
