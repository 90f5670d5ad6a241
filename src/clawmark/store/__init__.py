"""Stores of the index: the protocol in `base`, and SQLite."""
