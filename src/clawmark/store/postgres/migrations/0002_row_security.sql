-- Every query runs as the role `clawmark_service`, which owns nothing, for one declared caller:
--     SET LOCAL ROLE clawmark_service; SELECT set_config('clawmark.caller', '7', true)
-- Without a declared caller every read and write of a row fails. A caller sees only the scopes that
-- it is a member of, and only over the login that it belongs to.

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'clawmark_service') THEN
        CREATE ROLE clawmark_service NOLOGIN;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;  -- another database of the same server made it at the same moment
END
$$;
GRANT clawmark_service TO CURRENT_USER;
GRANT USAGE ON SCHEMA clawmark TO clawmark_service;

-- A setting that was set once in a session is empty afterwards, not unset: the cast fails then.
CREATE FUNCTION clawmark.readable() RETURNS bigint[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = '' AS $$
    SELECT coalesce(array_agg(m.scope), '{}')
    FROM clawmark.members m JOIN clawmark.callers c ON c.id = m.caller
    WHERE m.caller = current_setting('clawmark.caller')::bigint AND c.login = session_user
$$;

CREATE FUNCTION clawmark.writable() RETURNS bigint[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = '' AS $$
    SELECT coalesce(array_agg(m.scope), '{}')
    FROM clawmark.members m JOIN clawmark.callers c ON c.id = m.caller
    WHERE m.caller = current_setting('clawmark.caller')::bigint AND c.login = session_user
        AND m.may_write
$$;

-- Register an agent of this login with its private index, if necessary.
CREATE FUNCTION clawmark.open_private(wanted text, OUT caller bigint, OUT scope bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
BEGIN
    PERFORM pg_catalog.pg_advisory_xact_lock(
        pg_catalog.hashtextextended(session_user || E'\n' || wanted, 7)
    );
    SELECT c.id INTO caller FROM clawmark.callers c
    WHERE c.login = session_user AND c.name = wanted;
    IF caller IS NULL THEN
        INSERT INTO clawmark.callers (login, name) VALUES (session_user, wanted)
        RETURNING id INTO caller;
    END IF;
    SELECT m.scope INTO scope
    FROM clawmark.members m JOIN clawmark.scopes s ON s.id = m.scope
    WHERE m.caller = open_private.caller AND s.kind = 'private' AND m.may_write;
    IF scope IS NULL THEN
        INSERT INTO clawmark.scopes (kind, name) VALUES ('private', wanted) RETURNING id INTO scope;
        INSERT INTO clawmark.members (scope, caller, may_write)
        VALUES (open_private.scope, open_private.caller, true);
    END IF;
    INSERT INTO clawmark.indexes (scope, index_id)
    VALUES (open_private.scope, pg_catalog.floor(pg_catalog.random() * 9e15)::bigint)
    ON CONFLICT DO NOTHING;
END
$$;

-- Return the keys of chunks that have any, or all, of some terms.
--
-- Row-level security keeps PostgreSQL from using an inverted index, since it does not know that the
-- comparison of arrays has no side effects. So the lookup is here, as the owner, behind the same
-- check; what is found is read again under the policies.
CREATE FUNCTION clawmark.chunks_with(
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
            WHERE w.terms OPERATOR(pg_catalog.@>) $1 AND w.scope = $2 LIMIT $3'
        USING wanted, of_scope, most;
    ELSE
        RETURN QUERY EXECUTE 'SELECT w.key FROM clawmark.words w
            WHERE w.terms OPERATOR(pg_catalog.&&) $1 AND w.scope = $2 LIMIT $3'
        USING wanted, of_scope, most;
    END IF;
END
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA clawmark FROM PUBLIC;
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA clawmark TO clawmark_service;

DO $$
DECLARE
    of_table text;
BEGIN
    FOREACH of_table IN ARRAY ARRAY[
        'indexes', 'facts', 'files', 'chunks', 'words', 'terms', 'editions', 'spaces', 'vectors',
        'coverage', 'cache', 'running'
    ] LOOP
        EXECUTE format('ALTER TABLE clawmark.%I ENABLE ROW LEVEL SECURITY', of_table);
        EXECUTE format(
            'CREATE POLICY read_own ON clawmark.%I FOR SELECT TO clawmark_service
             USING (scope = ANY ((SELECT clawmark.readable())::bigint[]))', of_table);
        EXECUTE format(
            'CREATE POLICY insert_own ON clawmark.%I FOR INSERT TO clawmark_service
             WITH CHECK (scope = ANY ((SELECT clawmark.writable())::bigint[]))', of_table);
        EXECUTE format(
            'CREATE POLICY update_own ON clawmark.%I FOR UPDATE TO clawmark_service
             USING (scope = ANY ((SELECT clawmark.writable())::bigint[]))', of_table);
        EXECUTE format(
            'CREATE POLICY delete_own ON clawmark.%I FOR DELETE TO clawmark_service
             USING (scope = ANY ((SELECT clawmark.writable())::bigint[]))', of_table);
        EXECUTE format(
            'GRANT SELECT, INSERT, UPDATE, DELETE ON clawmark.%I TO clawmark_service', of_table);
    END LOOP;
END
$$;
GRANT SELECT ON clawmark.migrations TO clawmark_service;
