-- Who may see what. A caller is an agent or a person, known by the login it connects with. A scope
-- owns rows: the private index of one caller, or a shared space with members.

CREATE EXTENSION IF NOT EXISTS vector;

CREATE TABLE clawmark.callers (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    login name NOT NULL,
    name text NOT NULL,
    UNIQUE (login, name)
);

CREATE TABLE clawmark.scopes (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('private', 'space')),
    name text NOT NULL
);
CREATE UNIQUE INDEX scopes_of_spaces ON clawmark.scopes (name) WHERE kind = 'space';

CREATE TABLE clawmark.members (
    scope bigint NOT NULL REFERENCES clawmark.scopes ON DELETE CASCADE,
    caller bigint NOT NULL REFERENCES clawmark.callers ON DELETE CASCADE,
    may_write boolean NOT NULL,
    PRIMARY KEY (caller, scope)
);

-- The index of a scope. `generation` is the edition that answers, `building` the one that a rebuild
-- makes (0: none). Editions and keys are never used twice. Writers lock this row.
CREATE TABLE clawmark.indexes (
    scope bigint PRIMARY KEY REFERENCES clawmark.scopes ON DELETE CASCADE,
    index_id bigint NOT NULL,
    generation bigint NOT NULL DEFAULT 1,
    building bigint NOT NULL DEFAULT 0,
    last_built bigint NOT NULL DEFAULT 1,
    building_identity text NOT NULL DEFAULT '{}',
    next_key bigint NOT NULL DEFAULT 1,
    next_space bigint NOT NULL DEFAULT 1
);

CREATE TABLE clawmark.facts (
    scope bigint NOT NULL REFERENCES clawmark.scopes ON DELETE CASCADE,
    name text NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (scope, name)
);

-- A file that is stored in several transactions has `staged_at` until it is complete.
CREATE TABLE clawmark.files (
    scope bigint NOT NULL REFERENCES clawmark.scopes ON DELETE CASCADE,
    key bigint NOT NULL,
    edition bigint NOT NULL,
    path text NOT NULL,
    source text NOT NULL,
    hash text NOT NULL,
    size bigint NOT NULL,
    mtime_ns bigint NOT NULL,
    inode numeric(20) NOT NULL,
    device numeric(20) NOT NULL,
    seen_ns bigint NOT NULL,
    chunks integer NOT NULL,
    progress text NOT NULL,
    staged_at timestamptz,
    PRIMARY KEY (scope, key)
);
CREATE UNIQUE INDEX files_of_path ON clawmark.files (scope, edition, path) WHERE staged_at IS NULL;
CREATE INDEX files_staged ON clawmark.files (scope) WHERE staged_at IS NOT NULL;

-- Text is UTF-8 in a bytea, because a text value cannot hold the character NUL.
CREATE TABLE clawmark.chunks (
    scope bigint NOT NULL REFERENCES clawmark.scopes ON DELETE CASCADE,
    key bigint NOT NULL,
    edition bigint NOT NULL,
    file bigint NOT NULL,
    start_line integer NOT NULL,
    end_line integer NOT NULL,
    hash bytea NOT NULL,
    heading bytea NOT NULL,
    first_day text NOT NULL,
    last_day text NOT NULL,
    text bytea NOT NULL,
    PRIMARY KEY (scope, key)
);
CREATE INDEX chunks_of_file ON clawmark.chunks (scope, file, first_day, last_day);
CREATE INDEX chunks_of_edition ON clawmark.chunks (scope, edition, key);

-- The words of each chunk. A term is the hash of scope, edition and word, so the postings of two
-- scopes never meet in the inverted index. `stated` and `asked` count each term; `sequence` is the
-- number of the term at each position, column after column.
CREATE TABLE clawmark.words (
    scope bigint NOT NULL REFERENCES clawmark.scopes ON DELETE CASCADE,
    key bigint NOT NULL,
    edition bigint NOT NULL,
    file bigint NOT NULL,
    length integer NOT NULL,
    columns integer[] NOT NULL,
    terms bigint[] NOT NULL,
    stated integer[] NOT NULL,
    asked integer[],
    sequence bytea NOT NULL,
    PRIMARY KEY (scope, key)
);
CREATE INDEX words_of_file ON clawmark.words (scope, file);
CREATE INDEX words_of_terms ON clawmark.words USING gin (terms)
    WITH (fastupdate = on, gin_pending_list_limit = 1024);

-- In how many chunks each term occurs, and in how many it is stated: of finished files only.
CREATE TABLE clawmark.terms (
    scope bigint NOT NULL REFERENCES clawmark.scopes ON DELETE CASCADE,
    term bigint NOT NULL,
    edition bigint NOT NULL,
    chunks integer NOT NULL,
    stated integer NOT NULL,
    PRIMARY KEY (scope, term)
) WITH (fillfactor = 80);

-- Totals of an edition, for BM25 and for counting.
CREATE TABLE clawmark.editions (
    scope bigint NOT NULL REFERENCES clawmark.scopes ON DELETE CASCADE,
    edition bigint NOT NULL,
    chunks bigint NOT NULL DEFAULT 0,
    tokens bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (scope, edition)
);

CREATE TABLE clawmark.spaces (
    scope bigint NOT NULL REFERENCES clawmark.scopes ON DELETE CASCADE,
    id bigint NOT NULL,
    provider text NOT NULL,
    model text NOT NULL,
    provider_key text NOT NULL,
    dims integer NOT NULL,
    ready boolean NOT NULL DEFAULT false,
    PRIMARY KEY (scope, id)
);

-- Without an embedding, the chunk is not covered by the model.
CREATE TABLE clawmark.vectors (
    scope bigint NOT NULL REFERENCES clawmark.scopes ON DELETE CASCADE,
    space bigint NOT NULL,
    key bigint NOT NULL,
    edition bigint NOT NULL,
    embedding halfvec,
    PRIMARY KEY (scope, space, key)
);
ALTER TABLE clawmark.vectors ALTER COLUMN embedding SET STORAGE MAIN;

CREATE TABLE clawmark.coverage (
    scope bigint NOT NULL REFERENCES clawmark.scopes ON DELETE CASCADE,
    space bigint NOT NULL,
    edition bigint NOT NULL,
    vectors bigint NOT NULL DEFAULT 0,
    uncovered bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (scope, space, edition)
);

-- Each float32 vector once, by its embedder and the hash of its text.
CREATE TABLE clawmark.cache (
    scope bigint NOT NULL REFERENCES clawmark.scopes ON DELETE CASCADE,
    provider text NOT NULL,
    model text NOT NULL,
    provider_key text NOT NULL,
    hash bytea NOT NULL,
    dims integer NOT NULL,
    used_at bigint NOT NULL,
    embedding bytea NOT NULL,
    PRIMARY KEY (scope, hash, provider, model, provider_key)
);
ALTER TABLE clawmark.cache ALTER COLUMN embedding SET STORAGE EXTERNAL;
CREATE INDEX cache_of_age ON clawmark.cache (scope, used_at);

-- Syncs that run now, for `clawmark status`.
CREATE TABLE clawmark.running (
    scope bigint NOT NULL REFERENCES clawmark.scopes ON DELETE CASCADE,
    id uuid NOT NULL,
    facts text NOT NULL,
    noted_at timestamptz NOT NULL,
    PRIMARY KEY (scope, id)
);
