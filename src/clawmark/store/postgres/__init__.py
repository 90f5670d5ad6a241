"""The index in PostgreSQL with pgvector: many agents in one database, kept apart by policies."""
