"""Answers from the memory files as they were in an earlier version."""
