"""The longer SQL statements of `transaction`."""

INSERT_FILE = (
    "INSERT INTO clawmark.files (scope, key, edition, path, source, hash, size, mtime_ns, inode, "
    "device, seen_ns, chunks, progress, staged_at) "
    "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, "
    "CASE WHEN %s THEN now() END)"
)
INSERT_CHUNK = (
    "INSERT INTO clawmark.chunks (scope, key, edition, file, start_line, end_line, text, hash, "
    "heading, first_day, last_day) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)
INSERT_WORDS = (
    "INSERT INTO clawmark.words (scope, key, edition, file, length, columns, terms, stated, asked, "
    "sequence) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)
TERMS_OF = (
    "SELECT u.term, count(*) AS chunks, count(*) FILTER (WHERE u.stated > 0) AS stated "
    "FROM clawmark.words w, unnest(w.terms, w.stated) u (term, stated) "
    "WHERE w.scope = %(scope)s AND w.key = ANY (%(keys)s) GROUP BY u.term"
)


TRIM_CACHE = (
    "DELETE FROM clawmark.cache c USING (SELECT e.hash, e.provider, e.model, "
    "e.provider_key FROM clawmark.cache e WHERE e.scope = %s AND NOT EXISTS ("
    "SELECT FROM clawmark.spaces s JOIN clawmark.vectors v "
    "ON v.scope = s.scope AND v.space = s.id "
    "JOIN clawmark.chunks x ON x.scope = v.scope AND x.key = v.key "
    "WHERE s.scope = e.scope AND s.provider = e.provider AND s.model = e.model "
    "AND s.provider_key = e.provider_key AND x.hash = e.hash) "
    "ORDER BY e.used_at, e.hash LIMIT least(%s, greatest(0, "
    "(SELECT count(*) FROM clawmark.cache WHERE scope = %s) - %s))) old "
    "WHERE c.scope = %s AND c.hash = old.hash AND c.provider = old.provider "
    "AND c.model = old.model AND c.provider_key = old.provider_key"
)
