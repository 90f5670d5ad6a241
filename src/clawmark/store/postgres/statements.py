"""The longer SQL statements of `transaction`."""

INSERT_FILE = (
    "INSERT INTO clawmark.files (scope, key, edition, path, source, hash, size, mtime_ns, inode, "
    "device, seen_ns, chunks, progress, staged_at) "
    "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, "
    "CASE WHEN %s THEN now() END)"
)
INSERT_CHUNKS = (
    "INSERT INTO clawmark.chunks (scope, key, edition, file, start_line, end_line, text, hash, "
    "heading, first_day, last_day) SELECT %s, c.key, %s, %s, c.start_line, c.end_line, c.text, "
    "c.hash, c.heading, c.first_day, c.last_day FROM unnest(%b::bigint[], %b::int[], %b::int[], "
    "%b::bytea[], %b::bytea[], %b::bytea[], %b::text[], %b::text[]) "
    "c (key, start_line, end_line, text, hash, heading, first_day, last_day)"
)
# Arrays of arrays of different lengths do not exist, so arrays are sent as text.
INSERT_WORDS = (
    "INSERT INTO clawmark.words (scope, key, edition, file, length, columns, terms, stated, asked, "
    "sequence) SELECT %s, w.key, %s, %s, w.length, w.columns::int[], w.terms::bigint[], "
    "w.stated::int[], w.asked::int[], w.sequence FROM unnest(%b::bigint[], %b::int[], %b::text[], "
    "%b::text[], %b::text[], %b::text[], %b::bytea[]) "
    "w (key, length, columns, terms, stated, asked, sequence)"
)
ADD_TOTALS = (
    "INSERT INTO clawmark.editions AS e (scope, edition, chunks, tokens) VALUES (%s, %s, %s, %s) "
    "ON CONFLICT (scope, edition) DO UPDATE SET chunks = e.chunks + excluded.chunks, "
    "tokens = e.tokens + excluded.tokens"
)
CHANGE_TOTALS = (
    "INSERT INTO clawmark.editions AS e (scope, edition, chunks, tokens) "
    "SELECT %(scope)s, %(edition)s, %(sign)s * count(*), %(sign)s * coalesce(sum(length), 0) "
    "FROM clawmark.words WHERE scope = %(scope)s AND key = ANY (%(keys)s) "
    "ON CONFLICT (scope, edition) DO UPDATE SET chunks = e.chunks + excluded.chunks, "
    "tokens = e.tokens + excluded.tokens"
)
_ADDED_TERMS = (
    "ON CONFLICT (scope, term) DO UPDATE SET chunks = t.chunks + excluded.chunks, "
    "stated = t.stated + excluded.stated"
)
ADD_TERMS = (
    "INSERT INTO clawmark.terms AS t (scope, term, edition, chunks, stated) "
    "SELECT %s, n.term, %s, n.chunks, n.stated "
    f"FROM unnest(%b::bigint[], %b::int[], %b::int[]) n (term, chunks, stated) {_ADDED_TERMS}"
)
_TERMS_OF = (
    "SELECT u.term, count(*) AS chunks, count(*) FILTER (WHERE u.stated > 0) AS stated "
    "FROM clawmark.words w, unnest(w.terms, w.stated) u (term, stated) "
    "WHERE w.scope = %(scope)s AND w.key = ANY (%(keys)s) GROUP BY u.term"
)
ADD_TERMS_OF = (
    "INSERT INTO clawmark.terms AS t (scope, term, edition, chunks, stated) "
    "SELECT %(scope)s, n.term, %(edition)s, n.chunks, n.stated "
    f"FROM ({_TERMS_OF}) n {_ADDED_TERMS}"
)
SUBTRACT_TERMS_OF = (
    "UPDATE clawmark.terms t SET chunks = t.chunks - n.chunks, "
    f"stated = t.stated - n.stated FROM ({_TERMS_OF}) n "
    "WHERE t.scope = %(scope)s AND t.term = n.term"
)
# A provider may return another number of dimensions under the same name; the latest vector is kept.
CACHE_VECTORS = (
    "INSERT INTO clawmark.cache AS c (scope, provider, model, provider_key, hash, dims, used_at, "
    "embedding) SELECT %s, %s, %s, %s, v.hash, %s, %s, v.embedding "
    "FROM unnest(%b::bytea[], %b::bytea[]) v (hash, embedding) "
    "ON CONFLICT (scope, hash, provider, model, provider_key) DO UPDATE "
    "SET dims = excluded.dims, used_at = excluded.used_at, embedding = excluded.embedding "
    "WHERE c.dims <> excluded.dims"
)
PUT_VECTORS = (
    "WITH added AS (INSERT INTO clawmark.vectors (scope, space, key, edition, embedding) "
    "SELECT c.scope, %s, c.key, c.edition, v.embedding::halfvec "
    "FROM unnest(%b::bigint[], %b::bytea[], %b::text[]) v (key, hash, embedding) "
    "JOIN clawmark.chunks c ON c.scope = %s AND c.key = v.key AND c.hash = v.hash "
    "ON CONFLICT DO NOTHING RETURNING edition, embedding IS NOT NULL AS is_covered) "
    "SELECT edition, count(*) FILTER (WHERE is_covered), "
    "count(*) FILTER (WHERE NOT is_covered) FROM added GROUP BY edition"
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
