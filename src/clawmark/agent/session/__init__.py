"""A conversation with a memory: its session, settings and transcript."""
