"""The derived SQLite database: chunks and vectors in, snapshots to search out. All of it can be
rebuilt from files.

`store.SqliteStore` is the door. The layers inside, top to bottom: `store` (connections, the lock) ·
`writer` · `reader` · `generations` · `cache` · `blocks` and `vec0` (the two vector engines) ·
`packed` · `meta` · `db` (the only caller of apsw) · `schema`. What to put in and what to ask is
left to `sync` and `search`."""
