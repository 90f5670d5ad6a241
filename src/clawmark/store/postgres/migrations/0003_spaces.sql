-- Shared spaces: a scope of kind 'space' has documents that its members publish, and a log that they
-- append to. Its index is made from both, in the transaction that changes them.

ALTER TABLE clawmark.scopes ADD CONSTRAINT scopes_name_of_space
    CHECK (kind <> 'space' OR name ~ '^[a-z0-9][a-z0-9._-]{0,62}$');

-- A member of a space writes as its author. A name that ends with .md could be taken for a log.
ALTER TABLE clawmark.members ADD COLUMN author text
    CHECK (author ~ '^[a-z0-9][a-z0-9._-]{0,62}$' AND author NOT LIKE '%.md');
CREATE UNIQUE INDEX members_of_author ON clawmark.members (scope, author);

-- Counts the changes of a space. It begins at the time of its creation, so that a space that is
-- deleted and made again does not repeat versions.
ALTER TABLE clawmark.indexes ADD COLUMN version bigint NOT NULL DEFAULT 0;

-- A file that a member has published, by author and path; without text if it was withdrawn.
CREATE TABLE clawmark.documents (
    scope bigint NOT NULL REFERENCES clawmark.scopes ON DELETE CASCADE,
    path text COLLATE "C" NOT NULL,
    author text NOT NULL,
    caller bigint NOT NULL REFERENCES clawmark.callers,
    hash text NOT NULL,
    text bytea,
    changed timestamptz NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (scope, path),
    UNIQUE (scope, version),
    CHECK (starts_with(path, author || '/'))
);
CREATE INDEX documents_of_author ON clawmark.documents (scope, author);

-- The entries of a space's log. They are never changed; the file of a day is rendered from them. The
-- key identifies the call that stored an entry.
CREATE TABLE clawmark.entries (
    scope bigint NOT NULL REFERENCES clawmark.scopes ON DELETE CASCADE,
    version bigint NOT NULL,
    day date NOT NULL,
    at timestamptz NOT NULL,
    author text NOT NULL,
    caller bigint NOT NULL REFERENCES clawmark.callers,
    key text NOT NULL,
    text bytea NOT NULL,
    start_line integer NOT NULL,
    end_line integer NOT NULL,
    PRIMARY KEY (scope, version),
    UNIQUE (scope, caller, key),
    CHECK (day = (at AT TIME ZONE 'UTC')::date)
);
CREATE INDEX entries_of_day ON clawmark.entries (scope, day, start_line);

-- Tokens for the server, as SHA-256 only. Without `spaces`, a token is valid for all of its caller.
CREATE TABLE clawmark.tokens (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    caller bigint NOT NULL REFERENCES clawmark.callers ON DELETE CASCADE,
    label text NOT NULL,
    hash bytea NOT NULL UNIQUE,
    permissions text[] NOT NULL
        CHECK (permissions <@ ARRAY['read', 'append', 'publish'] AND cardinality(permissions) > 0),
    spaces text[],
    created timestamptz NOT NULL DEFAULT now(),
    expires timestamptz,
    revoked timestamptz,
    last_used timestamptz
);
CREATE INDEX tokens_of_caller ON clawmark.tokens (caller);

-- Return the caller of this login by its name; nothing if there is none.
CREATE FUNCTION clawmark.caller_named(wanted text) RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = '' AS $$
    SELECT c.id FROM clawmark.callers c WHERE c.login = session_user AND c.name = wanted
$$;

-- Return the spaces of the declared caller.
CREATE FUNCTION clawmark.my_spaces()
RETURNS TABLE (scope bigint, name text, author text, may_write boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = '' AS $$
    SELECT s.id, s.name, m.author, m.may_write
    FROM clawmark.members m
    JOIN clawmark.callers c ON c.id = m.caller
    JOIN clawmark.scopes s ON s.id = m.scope
    WHERE m.caller = current_setting('clawmark.caller')::bigint AND c.login = session_user
        AND s.kind = 'space'
    ORDER BY s.name COLLATE "C"
$$;

-- Return whether the declared caller may write into a space as an author.
CREATE FUNCTION clawmark.writes_as(of_scope bigint, of_caller bigint, wanted text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = '' AS $$
    SELECT EXISTS (
        SELECT FROM clawmark.members m JOIN clawmark.callers c ON c.id = m.caller
        WHERE m.scope = of_scope AND m.caller = current_setting('clawmark.caller')::bigint
            AND m.caller = of_caller AND c.login = session_user AND m.may_write
            AND m.author = wanted
    )
$$;

-- Return whom a token stands for, by the SHA-256 of its text, among the callers of this login. The
-- time of use is recorded once a minute.
CREATE FUNCTION clawmark.use_token(
    digest bytea, OUT token bigint, OUT caller_name text, OUT allowed text[], OUT only_spaces text[]
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
BEGIN
    SELECT t.id, c.name, t.permissions, t.spaces
    INTO token, caller_name, allowed, only_spaces
    FROM clawmark.tokens t JOIN clawmark.callers c ON c.id = t.caller
    WHERE t.hash = digest AND c.login = session_user AND t.revoked IS NULL
        AND (t.expires IS NULL OR t.expires > pg_catalog.now());
    IF token IS NOT NULL THEN
        UPDATE clawmark.tokens t SET last_used = pg_catalog.now()
        WHERE t.id = token
            AND (t.last_used IS NULL
                OR t.last_used < pg_catalog.now() - pg_catalog.make_interval(mins => 1));
    END IF;
END
$$;

REVOKE ALL ON FUNCTION clawmark.caller_named, clawmark.my_spaces, clawmark.writes_as,
    clawmark.use_token FROM PUBLIC;
GRANT EXECUTE ON FUNCTION clawmark.caller_named, clawmark.my_spaces, clawmark.writes_as,
    clawmark.use_token TO clawmark_service;

ALTER TABLE clawmark.documents ENABLE ROW LEVEL SECURITY;
ALTER TABLE clawmark.entries ENABLE ROW LEVEL SECURITY;
ALTER TABLE clawmark.tokens ENABLE ROW LEVEL SECURITY;
CREATE POLICY read_own ON clawmark.documents FOR SELECT TO clawmark_service
    USING (scope = ANY ((SELECT clawmark.readable())::bigint[]));
CREATE POLICY insert_own ON clawmark.documents FOR INSERT TO clawmark_service
    WITH CHECK (clawmark.writes_as(scope, caller, author));
CREATE POLICY update_own ON clawmark.documents FOR UPDATE TO clawmark_service
    USING (clawmark.writes_as(scope, caller, author))
    WITH CHECK (clawmark.writes_as(scope, caller, author));
CREATE POLICY read_own ON clawmark.entries FOR SELECT TO clawmark_service
    USING (scope = ANY ((SELECT clawmark.readable())::bigint[]));
CREATE POLICY insert_own ON clawmark.entries FOR INSERT TO clawmark_service
    WITH CHECK (clawmark.writes_as(scope, caller, author));
GRANT SELECT, INSERT, UPDATE ON clawmark.documents TO clawmark_service;
GRANT SELECT, INSERT ON clawmark.entries TO clawmark_service;
