-- The terms of two scopes differ, so a lookup by terms finds rows of one scope only. With `+ 0`, the
-- scope is compared in those rows; otherwise PostgreSQL also reads the whole scope from an index.
CREATE OR REPLACE FUNCTION clawmark.chunks_with(
    of_scope bigint, wanted bigint[], is_all boolean, most integer
) RETURNS SETOF bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = '' SET enable_seqscan = off AS $$
BEGIN
    IF NOT of_scope = ANY (clawmark.readable()) THEN
        RETURN;
    END IF;
    IF is_all THEN
        RETURN QUERY EXECUTE 'SELECT w.key FROM clawmark.words w
            WHERE w.terms OPERATOR(pg_catalog.@>) $1 AND w.scope + 0 = $2 LIMIT $3'
        USING wanted, of_scope, most;
    ELSE
        RETURN QUERY EXECUTE 'SELECT w.key FROM clawmark.words w
            WHERE w.terms OPERATOR(pg_catalog.&&) $1 AND w.scope + 0 = $2 LIMIT $3'
        USING wanted, of_scope, most;
    END IF;
END
$$;

-- Return the keys of the chunks with the highest BM25 scores among those that have all terms of one
-- of some combinations; each combination is the text of an array. At most `most_read` chunks are
-- scored. Like `chunks_with`, it checks the caller and returns keys only.
--
-- A score is the sum of weight * (1 - norm / (norm + frequency)) with norm = base + slope * length.
CREATE FUNCTION clawmark.best_with(
    of_scope bigint, combinations text[], terms bigint[], weights float8[],
    base float8, slope float8, asked_weight float8, unfinished bigint[],
    most_read integer, most integer
) RETURNS SETOF bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = '' SET enable_seqscan = off SET work_mem = '64MB' AS $$
DECLARE
    condition text;
    score text;
BEGIN
    IF NOT of_scope = ANY (clawmark.readable()) THEN
        RETURN;
    END IF;
    SELECT string_agg(format('w.terms OPERATOR(pg_catalog.@>) %L::bigint[]', c::bigint[]), ' OR ')
    INTO condition FROM unnest(combinations) c;
    SELECT string_agg(format(
        '%1$L::float8 * (1 - %3$s / (%3$s + coalesce(w.stated[array_position(w.terms, %2$L)], 0)'
        ' + CASE WHEN w.asked IS NULL THEN 0 ELSE'
        ' coalesce(w.asked[array_position(w.terms, %2$L)], 0) * $5 END))',
        u.weight, u.term, '($3 + $4 * w.length)'), ' + ')
    INTO score FROM unnest(terms, weights) u (term, weight);
    IF condition IS NULL OR score IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY EXECUTE format(
        'SELECT c.key FROM (SELECT w.key, %s AS score FROM clawmark.words w
            WHERE (%s) AND w.scope + 0 = $1 AND w.file <> ALL ($2) LIMIT $6) c
        ORDER BY c.score DESC, c.key LIMIT $7', score, condition)
    USING of_scope, unfinished, base, slope, asked_weight, most_read, most;
END
$$;

REVOKE ALL ON FUNCTION clawmark.best_with FROM PUBLIC;
GRANT EXECUTE ON FUNCTION clawmark.best_with TO clawmark_service;
