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
-- What happened to one record. What was said in a conversation is found through its messages, and costs no page here.
CREATE INDEX events_at ON events (target, seq) WHERE target < 'conversation:' OR target >= 'conversation;';

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
    wake_policy TEXT NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX agents_by_name ON agents (definition_id, workspace, profile, node);
CREATE INDEX agents_by_definition ON agents (definition_id, id);
CREATE INDEX agents_by_owner ON agents (owner, id);
CREATE INDEX agents_by_parent ON agents (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX agents_by_root ON agents (project_root) WHERE project_root IS NOT NULL;
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
CREATE INDEX agents_kept_warm ON agents (id) WHERE wake_policy = 'keep_warm' AND lifecycle <> 'retired';

CREATE TABLE endpoints (
    id TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL,
    session_id TEXT,
    state TEXT NOT NULL,
    last_seen INTEGER,
    held INTEGER NOT NULL,
    wake_policy TEXT,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX endpoints_by_agent ON endpoints (agent_id);
CREATE INDEX endpoints_of_session ON endpoints (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX endpoints_silent ON endpoints (last_seen) WHERE held = 0 AND state IN ('idle', 'working');
CREATE INDEX endpoints_held ON endpoints (id) WHERE held = 1 AND state IN ('waking', 'idle', 'working');
CREATE INDEX endpoints_kept_warm ON endpoints (agent_id) WHERE wake_policy = 'keep_warm' AND state <> 'stopped';

CREATE TABLE sessions (
    id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, state TEXT NOT NULL, data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_by_agent ON sessions (agent_id, id);
CREATE INDEX sessions_running ON sessions (id) WHERE state IN ('starting', 'live');

CREATE TABLE conversations (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    owner TEXT,
    name TEXT,
    parent_id TEXT,
    archived_at INTEGER,
    created_at INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX conversations_of_owner ON conversations (owner, created_at) WHERE kind = 'channel' AND archived_at IS NULL;

CREATE TABLE members (
    id TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    read_seq INTEGER NOT NULL,
    left_at INTEGER,
    created_at INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (conversation_id, agent_id) -- the members of a conversation lie on one page
) STRICT, WITHOUT ROWID;
CREATE INDEX members_by_agent ON members (agent_id, created_at) WHERE left_at IS NULL;

CREATE TABLE messages (
    id TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL,
    sender TEXT NOT NULL,
    seq INTEGER NOT NULL,
    in_reply_to TEXT,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX messages_by_conversation ON messages (conversation_id, seq);
CREATE INDEX messages_by_question ON messages (in_reply_to, seq) WHERE in_reply_to IS NOT NULL;

CREATE TABLE asks (
    id TEXT PRIMARY KEY,
    message_id TEXT NOT NULL,
    sender TEXT NOT NULL,
    target TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX asks_by_sender ON asks (sender, created_at);
CREATE INDEX asks_by_message ON asks (message_id);

CREATE TABLE flights (
    id TEXT PRIMARY KEY,
    ask_id TEXT NOT NULL,
    target TEXT NOT NULL,
    requester_id TEXT NOT NULL,
    state TEXT NOT NULL,
    next_check_at INTEGER,
    finished_at INTEGER,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX flights_by_ask ON flights (ask_id, id);
CREATE INDEX flights_by_target ON flights (target, id);
CREATE INDEX flights_by_requester ON flights (requester_id, id);
CREATE INDEX flights_open_at ON flights (target, id) WHERE finished_at IS NULL;
CREATE INDEX flights_open_for ON flights (requester_id, id) WHERE finished_at IS NULL;
CREATE INDEX flights_finished_for ON flights (requester_id, finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX flights_due ON flights (next_check_at) WHERE next_check_at IS NOT NULL;

CREATE TABLE deliveries (
    id TEXT PRIMARY KEY,
    target TEXT NOT NULL,
    state TEXT NOT NULL,
    wake INTEGER NOT NULL,
    delegates INTEGER NOT NULL,
    next_attempt_at INTEGER NOT NULL,
    leased_until INTEGER,
    conversation_id TEXT,
    message_id TEXT,
    flight_id TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_expiring ON deliveries (expires_at) WHERE state = 'pending' AND expires_at IS NOT NULL;
CREATE INDEX deliveries_settled ON deliveries (target, id) WHERE state IN ('acked', 'dead_lettered', 'cancelled');
CREATE INDEX deliveries_open ON deliveries (target, id) WHERE state IN ('pending', 'leased');
CREATE INDEX deliveries_due ON deliveries (next_attempt_at) WHERE state = 'pending' AND wake = 1;
CREATE INDEX deliveries_leased ON deliveries (leased_until) WHERE state = 'leased';
CREATE INDEX deliveries_wakes ON deliveries (conversation_id, created_at) WHERE wake = 1;
-- Plain messages that are to be acted on, in the order in which their answers become overdue.
CREATE INDEX deliveries_delegating ON deliveries (created_at) WHERE delegates = 1;
CREATE INDEX deliveries_by_flight ON deliveries (flight_id) WHERE flight_id IS NOT NULL;
CREATE INDEX deliveries_by_message ON deliveries (message_id) WHERE message_id IS NOT NULL;

CREATE TABLE questions (
    id TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    asker_id TEXT NOT NULL,
    responder_id TEXT NOT NULL,
    next_move_owner_id TEXT,
    message_id TEXT,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX questions_owed ON questions (next_move_owner_id, id) WHERE next_move_owner_id IS NOT NULL;
CREATE INDEX questions_by_message ON questions (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX questions_by_asker ON questions (asker_id, id);
CREATE INDEX questions_by_responder ON questions (responder_id, id);
CREATE INDEX questions_open_by_asker ON questions (asker_id, id) WHERE next_move_owner_id IS NOT NULL;

CREATE TABLE work_items (
    id TEXT PRIMARY KEY,
    owner_id TEXT NOT NULL,
    requester_id TEXT NOT NULL,
    next_move_owner_id TEXT,
    state TEXT NOT NULL,
    awaits TEXT, -- the work item that it waits for
    settled_at INTEGER,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX work_items_by_owner ON work_items (owner_id, id);
CREATE INDEX work_items_by_requester ON work_items (requester_id, id);
CREATE INDEX work_items_owed ON work_items (next_move_owner_id, id) WHERE settled_at IS NULL;
CREATE INDEX work_items_open ON work_items (id) WHERE settled_at IS NULL;
CREATE INDEX work_items_open_by_owner ON work_items (owner_id, id) WHERE settled_at IS NULL;
CREATE INDEX work_items_open_by_requester ON work_items (requester_id, id) WHERE settled_at IS NULL;
CREATE INDEX work_items_awaiting ON work_items (awaits) WHERE awaits IS NOT NULL;

CREATE TABLE attention (
    id TEXT PRIMARY KEY,
    user TEXT NOT NULL,
    agent_id TEXT,
    state TEXT NOT NULL,
    dedupe TEXT,
    expires_at INTEGER,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX attention_of ON attention (user, id);
CREATE INDEX attention_open ON attention (user, id) WHERE state IN ('open', 'notified');
CREATE INDEX attention_untold ON attention (user, id) WHERE state = 'open';
CREATE INDEX attention_by_agent ON attention (agent_id, id) WHERE agent_id IS NOT NULL;
CREATE INDEX attention_open_by_agent ON attention (agent_id, id) WHERE state IN ('open', 'notified');
CREATE INDEX attention_expiring ON attention (expires_at)
    WHERE state IN ('open', 'notified') AND expires_at IS NOT NULL;
CREATE UNIQUE INDEX attention_same ON attention (dedupe, user)
    WHERE dedupe IS NOT NULL AND state IN ('open', 'notified');

CREATE TABLE bindings (id TEXT PRIMARY KEY, state TEXT NOT NULL, data BLOB NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE cards (
    id TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL,
    created_by TEXT NOT NULL,
    state TEXT NOT NULL,
    expires_at INTEGER,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX cards_by_maker ON cards (created_by, id);
CREATE INDEX cards_expiring ON cards (expires_at) WHERE state = 'active' AND expires_at IS NOT NULL;

CREATE TABLE aliases (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    agent_id TEXT,
    session_id TEXT,
    until_session_ends INTEGER NOT NULL,
    state TEXT NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX aliases_of_sessions ON aliases (session_id) WHERE until_session_ends = 1 AND state <> 'removed';
CREATE INDEX aliases_by_agent ON aliases (agent_id, owner) WHERE agent_id IS NOT NULL;
CREATE UNIQUE INDEX aliases_by_name ON aliases (owner, name) WHERE state <> 'removed';
CREATE INDEX aliases_of ON aliases (owner, id) WHERE state <> 'removed';

CREATE TABLE usage (
    id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, category TEXT NOT NULL, created_at INTEGER NOT NULL, data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_by_agent ON usage (agent_id, created_at);

-- The sums of each day (of UTC): what was spent today or in a year costs days × agents, however many reports there are.
CREATE TABLE usage_days (
    day TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    category TEXT NOT NULL,
    harness TEXT NOT NULL, -- '' when the report names none
    model TEXT NOT NULL,
    reports INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    total_tokens INTEGER NOT NULL,
    estimated_tokens INTEGER NOT NULL,
    dispatch_attempts INTEGER NOT NULL,
    wake_failures INTEGER NOT NULL,
    diagnostics_generated INTEGER NOT NULL,
    orientation_commands_avoided INTEGER NOT NULL,
    PRIMARY KEY (day, agent_id, category, harness, model)
) STRICT, WITHOUT ROWID;

CREATE TABLE users (id TEXT PRIMARY KEY, name TEXT NOT NULL, operator INTEGER NOT NULL, state TEXT NOT NULL, data BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX users_operator ON users (operator) WHERE operator = 1;

CREATE TABLE connector_keys (
    id TEXT PRIMARY KEY, connector TEXT NOT NULL, external_id TEXT NOT NULL, user TEXT NOT NULL, state TEXT NOT NULL, data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX connector_keys_by_name ON connector_keys (connector, external_id) WHERE state = 'active';

CREATE TABLE nodes (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, local INTEGER NOT NULL, state TEXT NOT NULL, data BLOB NOT NULL) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX nodes_local ON nodes (local) WHERE local = 1;

CREATE TABLE tokens (
    id TEXT PRIMARY KEY, hashed TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, agent_id TEXT, session_id TEXT, state TEXT NOT NULL, expires_at INTEGER, data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tokens_expiring ON tokens (expires_at) WHERE state = 'active' AND expires_at IS NOT NULL;
CREATE INDEX tokens_by_agent ON tokens (agent_id) WHERE agent_id IS NOT NULL AND state = 'active';
CREATE INDEX tokens_by_session ON tokens (session_id) WHERE session_id IS NOT NULL AND state = 'active';

CREATE TABLE grants (
    id TEXT PRIMARY KEY, agent_id TEXT, user TEXT, state TEXT NOT NULL, expires_at INTEGER, data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX grants_expiring ON grants (expires_at) WHERE state = 'active' AND expires_at IS NOT NULL;
CREATE INDEX grants_by_agent ON grants (agent_id) WHERE state = 'active' AND agent_id IS NOT NULL;
CREATE INDEX grants_by_user ON grants (user) WHERE state = 'active' AND user IS NOT NULL;

CREATE TABLE schedules (id TEXT PRIMARY KEY, state TEXT NOT NULL, data BLOB NOT NULL) STRICT, WITHOUT ROWID;

-- What somebody owes a move in, since when, and the reminders so far. Derived from records and nudges alone.
CREATE TABLE sweeps (
    id TEXT PRIMARY KEY,
    period TEXT NOT NULL, -- the setting after which it is overdue
    since INTEGER NOT NULL,
    nudges INTEGER NOT NULL,
    nudged_at INTEGER,
    next_at INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX sweeps_first ON sweeps (period, since) WHERE nudges = 0;
CREATE INDEX sweeps_next ON sweeps (next_at) WHERE next_at IS NOT NULL;

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
CREATE INDEX reachable_by_agent ON reachable (agent_id);

CREATE TABLE native_sessions (
    harness TEXT NOT NULL,
    native_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    PRIMARY KEY (harness, native_id, session_id)
) STRICT, WITHOUT ROWID;

-- The relations between work items, from their other end.
CREATE TABLE work_relations (
    work_item_id TEXT NOT NULL, from_id TEXT NOT NULL, kind TEXT NOT NULL, PRIMARY KEY (work_item_id, from_id, kind)
) STRICT, WITHOUT ROWID;

-- Definitions and aliases ever used, and their texts with one letter left out.
CREATE TABLE names (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE name_keys (key TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (key, name)) STRICT, WITHOUT ROWID;
