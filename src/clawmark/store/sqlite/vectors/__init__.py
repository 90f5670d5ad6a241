"""Vector indexes inside SQLite: packed blocks, and sqlite-vec."""
