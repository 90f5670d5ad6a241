"""The index in an SQLite file. It is derived and can be rebuilt from the files.

`store.SqliteStore` is the entry point. From top to bottom: `store` (connections and locks),
`transaction`, `snapshot`, `generations` and `upkeep`, `keywords`, `cache`, `vectors` (the engines
`blocks` and `vec0`), `meta`, `db` (the only caller of apsw), `schema`."""
