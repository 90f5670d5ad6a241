"""The stdio transport: its streams, the early answer to `initialize`, and the serving loop."""
