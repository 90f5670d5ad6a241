"""The shared spaces of a team in PostgreSQL: members, documents, log entries and tokens."""
