-- The log is the truth. Every other table is projected from it and can be rebuilt.
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    time INTEGER NOT NULL,
    type TEXT NOT NULL,
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    data BLOB NOT NULL
) STRICT;
CREATE INDEX events_by_source ON events (source, seq);
CREATE INDEX events_by_target ON events (target, seq);

CREATE TABLE agents (
    id TEXT PRIMARY KEY,
    owner TEXT,
    path TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    parent_id TEXT,
    definition_id TEXT,
    workspace TEXT,
    profile TEXT,
    node TEXT NOT NULL,
    project_root TEXT,
    working_dir TEXT,
    birth_branch TEXT,
    lifecycle TEXT NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX agents_by_name ON agents (definition_id, workspace, profile, node);
CREATE INDEX agents_by_node ON agents (definition_id, node);
CREATE INDEX agents_by_project ON agents (definition_id, project_root);
CREATE INDEX agents_by_workspace ON agents (workspace) WHERE workspace IS NOT NULL;
CREATE INDEX agents_by_directory ON agents (coalesce(working_dir, project_root))
    WHERE kind = 'agent' AND profile IS NULL;
CREATE UNIQUE INDEX agents_by_branch ON agents (project_root, birth_branch) WHERE birth_branch IS NOT NULL;
-- The base agent and its node are unique among live agents; absent qualifiers count as equal.
CREATE UNIQUE INDEX agents_live_name
    ON agents (definition_id, coalesce(workspace, ''), coalesce(profile, ''), node)
    WHERE definition_id IS NOT NULL AND lifecycle <> 'retired';

CREATE TABLE endpoints (
    id TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL,
    session_id TEXT,
    state TEXT NOT NULL,
    last_seen INTEGER,
    held INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX endpoints_by_agent ON endpoints (agent_id);

CREATE TABLE sessions (
    id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, state TEXT NOT NULL, data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_agent ON sessions (agent_id);

CREATE TABLE conversations (
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, owner TEXT, name TEXT, parent_id TEXT, data BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE members (
    id TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    read_seq INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX members_by_conversation ON members (conversation_id, agent_id);
CREATE INDEX members_by_agent ON members (agent_id);

CREATE TABLE messages (
    id TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL,
    sender TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX messages_by_conversation ON messages (conversation_id, id);

CREATE TABLE asks (
    id TEXT PRIMARY KEY, conversation_id TEXT NOT NULL, sender TEXT NOT NULL, target TEXT NOT NULL, data BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE flights (
    id TEXT PRIMARY KEY,
    ask_id TEXT NOT NULL,
    target TEXT NOT NULL,
    requester_id TEXT NOT NULL,
    state TEXT NOT NULL,
    next_check_at INTEGER,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX flights_by_ask ON flights (ask_id);
CREATE INDEX flights_by_target ON flights (target, state);
CREATE INDEX flights_due ON flights (next_check_at) WHERE next_check_at IS NOT NULL;

CREATE TABLE deliveries (
    id TEXT PRIMARY KEY,
    target TEXT NOT NULL,
    state TEXT NOT NULL,
    next_attempt_at INTEGER NOT NULL,
    leased_until INTEGER,
    message_id TEXT,
    flight_id TEXT,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_pending ON deliveries (target, next_attempt_at) WHERE state = 'pending';
CREATE INDEX deliveries_leased ON deliveries (leased_until) WHERE state = 'leased';
CREATE INDEX deliveries_by_flight ON deliveries (flight_id) WHERE flight_id IS NOT NULL;
CREATE INDEX deliveries_by_message ON deliveries (message_id) WHERE message_id IS NOT NULL;

CREATE TABLE questions (
    id TEXT PRIMARY KEY, state TEXT NOT NULL, next_move_owner_id TEXT, data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX questions_by_holder ON questions (next_move_owner_id, state);

CREATE TABLE work_items (
    id TEXT PRIMARY KEY, owner_id TEXT NOT NULL, next_move_owner_id TEXT, state TEXT NOT NULL, data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX work_items_by_holder ON work_items (next_move_owner_id, state);
CREATE INDEX work_items_by_owner ON work_items (owner_id, state);

CREATE TABLE attention (
    id TEXT PRIMARY KEY, user TEXT NOT NULL, state TEXT NOT NULL, dedupe TEXT, expires_at INTEGER, data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX attention_by_user ON attention (user, state);

CREATE TABLE bindings (id TEXT PRIMARY KEY, state TEXT NOT NULL, data BLOB NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE cards (
    id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, state TEXT NOT NULL, expires_at INTEGER, data BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE aliases (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    agent_id TEXT,
    state TEXT NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX aliases_by_agent ON aliases (agent_id, owner) WHERE agent_id IS NOT NULL;
CREATE UNIQUE INDEX aliases_by_name ON aliases (owner, name) WHERE state <> 'removed';

CREATE TABLE usage (
    id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, category TEXT NOT NULL, created_at INTEGER NOT NULL, data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_by_agent ON usage (agent_id, created_at);

CREATE TABLE users (id TEXT PRIMARY KEY, state TEXT NOT NULL, data BLOB NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE connector_keys (
    id TEXT PRIMARY KEY, connector TEXT NOT NULL, external_id TEXT NOT NULL, user TEXT NOT NULL, state TEXT NOT NULL, data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX connector_keys_by_name ON connector_keys (connector, external_id) WHERE state = 'active';

CREATE TABLE nodes (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, state TEXT NOT NULL, data BLOB NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE tokens (
    id TEXT PRIMARY KEY, hashed TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, agent_id TEXT, session_id TEXT, state TEXT NOT NULL, data BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE grants (id TEXT PRIMARY KEY, state TEXT NOT NULL, data BLOB NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE schedules (id TEXT PRIMARY KEY, state TEXT NOT NULL, data BLOB NOT NULL) STRICT, WITHOUT ROWID;

-- What the resolver looks for. Derived from the rows above, rebuilt with them.
CREATE TABLE endpoint_words (
    agent_id TEXT NOT NULL,
    harness TEXT NOT NULL, -- '' when the endpoint names none
    word TEXT NOT NULL,    -- a text that asks for its model; '' asks for none
    endpoint_id TEXT NOT NULL,
    PRIMARY KEY (agent_id, harness, word, endpoint_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX endpoint_words_by_endpoint ON endpoint_words (endpoint_id);

-- Agents with an endpoint that is idle or working: a short list to look through for who is online.
CREATE TABLE reachable (
    definition_id TEXT NOT NULL, agent_id TEXT NOT NULL, PRIMARY KEY (definition_id, agent_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE native_sessions (
    harness TEXT NOT NULL,
    native_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    PRIMARY KEY (harness, native_id, session_id)
) STRICT, WITHOUT ROWID;

-- Definitions and aliases ever used, and their texts with one letter left out.
CREATE TABLE names (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE name_keys (key TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (key, name)) STRICT, WITHOUT ROWID;
