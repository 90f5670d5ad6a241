"""Keyword search in FTS5: MATCH expressions, how rare words are, and the ranking of rows."""
