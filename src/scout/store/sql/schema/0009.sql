-- People: users by name and by owner, their chat accounts, one-time link codes, and bindings of chats.
ALTER TABLE users ADD COLUMN owner TEXT;
UPDATE users SET data = CAST(
    json_set(CAST(data AS TEXT), '$.reason', '', '$.retiredAgents', json('[]'), '$.retiredUsers', json('[]')) AS BLOB);
CREATE UNIQUE INDEX users_by_name ON users (name);
CREATE INDEX users_by_owner ON users (owner, id) WHERE owner IS NOT NULL;

CREATE INDEX connector_keys_of_user ON connector_keys (user, id);

CREATE TABLE link_codes (
    id TEXT PRIMARY KEY,
    hashed TEXT NOT NULL UNIQUE,
    user TEXT NOT NULL,
    connector TEXT NOT NULL,
    state TEXT NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
-- One open code for each user and connector.
CREATE UNIQUE INDEX link_codes_open ON link_codes (user, connector) WHERE state = 'open';

-- Wrong codes: when, and a hash of the chat. Outside of the log; old rows are removed with the next one.
CREATE TABLE link_attempts (connector TEXT NOT NULL, chat TEXT NOT NULL, time INTEGER NOT NULL) STRICT;
CREATE INDEX link_attempts_in ON link_attempts (connector, time, chat);

-- No binding was ever made before this version.
DROP TABLE bindings;
CREATE TABLE bindings (
    id TEXT PRIMARY KEY,
    surface TEXT NOT NULL,
    name TEXT NOT NULL,
    external_id TEXT NOT NULL,
    topic_id TEXT,
    conversation_id TEXT,
    agent_id TEXT,
    user TEXT,
    state TEXT NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX bindings_by_place ON bindings (surface, name, external_id, coalesce(topic_id, ''))
    WHERE state = 'active';
CREATE INDEX bindings_of_user ON bindings (user, id);
CREATE INDEX bindings_of_conversation ON bindings (conversation_id) WHERE state = 'active';
CREATE INDEX bindings_of_agent ON bindings (agent_id) WHERE state = 'active';

-- Online agents without a handle, such as those behind a chat, are found under the empty name.
INSERT OR IGNORE INTO reachable
SELECT '', a.id FROM agents a JOIN endpoints e ON e.agent_id = a.id
WHERE a.definition_id IS NULL AND e.state IN ('idle', 'working');

-- An agent behind a chat sleeps like any other; a person does not.
DROP INDEX agents_awake;
CREATE INDEX agents_awake ON agents (coalesce(last_active_at, 0))
    WHERE lifecycle = 'active' AND kind <> 'system' AND path <> '/' || coalesce(owner, '') || '/direct';
-- Chats: what came from platforms, what is shown there, and standing decisions that end with a session.
CREATE TABLE chat_posts (
    id TEXT PRIMARY KEY,
    connector TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    user TEXT NOT NULL,
    message_id TEXT,
    attention_id TEXT,
    state TEXT NOT NULL,
    next_attempt_at INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX chat_posts_queued ON chat_posts (connector, next_attempt_at) WHERE state = 'queued';
CREATE INDEX chat_posts_sending ON chat_posts (connector) WHERE state = 'sending';
CREATE INDEX chat_posts_of_attention ON chat_posts (attention_id) WHERE attention_id IS NOT NULL;
CREATE INDEX chat_posts_of_message ON chat_posts (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX chat_posts_of_user ON chat_posts (user, id);

-- The parts of posts by their ids on the platform: what a person replies to or presses.
CREATE TABLE chat_parts (
    connector TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    external_id TEXT NOT NULL,
    post_id TEXT NOT NULL,
    PRIMARY KEY (connector, chat_id, external_id)
) STRICT, WITHOUT ROWID;

-- What came from platforms: each event is taken once, and its answer goes back to where it came from.
CREATE TABLE chat_received (
    connector TEXT NOT NULL,
    inbound_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    chat_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    external_id TEXT,
    message_id TEXT,
    asks INTEGER NOT NULL,
    PRIMARY KEY (connector, inbound_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX chat_received_as ON chat_received (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX chat_received_from ON chat_received (connector, chat_id, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX chat_received_asks ON chat_received (connector, chat_id, thread_id, seq) WHERE asks = 1;

-- Whom Scout told today how to be linked: a short hash of the account.
CREATE TABLE chat_strangers (
    connector TEXT NOT NULL,
    hashed TEXT NOT NULL,
    day TEXT NOT NULL,
    PRIMARY KEY (connector, hashed, day)
) STRICT, WITHOUT ROWID;

-- How far each connector has read. Outside of the log: an event that is read again is not taken again.
CREATE TABLE chat_cursors (connector TEXT PRIMARY KEY, cursor TEXT NOT NULL) STRICT, WITHOUT ROWID;

ALTER TABLE allowances ADD COLUMN session_id TEXT;
UPDATE allowances SET data = CAST(json_set(CAST(data AS TEXT), '$.sessionId', NULL) AS BLOB);
CREATE INDEX allowances_of_session ON allowances (session_id) WHERE session_id IS NOT NULL AND state = 'active';

-- Schedules by the time at which they are due, by their user and cron agent, and by their last change.
ALTER TABLE schedules ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE schedules ADD COLUMN agent_id TEXT NOT NULL DEFAULT '';
ALTER TABLE schedules ADD COLUMN next_at INTEGER;
ALTER TABLE schedules ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
UPDATE schedules SET
    owner = CAST(data AS TEXT) ->> '$.owner',
    agent_id = CAST(data AS TEXT) ->> '$.agentId',
    next_at = CAST(data AS TEXT) ->> '$.nextAt',
    updated_at = CAST(data AS TEXT) ->> '$.updatedAt',
    data = CAST(json_set(
        CAST(data AS TEXT), '$.jitter', 0, '$.channelId', NULL, '$.slot', NULL, '$.waitingSlot', NULL,
        '$.lastSlot', NULL, '$.lastAskId', NULL, '$.skipped', 0, '$.failed', 0, '$.notStarted', 0,
        '$.ranAhead', json('[]')) AS BLOB);
-- The tasks of a user.
CREATE INDEX agents_tasks ON agents (owner, id) WHERE kind = 'task';

-- The agents that a user may have in front, in the order of their latest activity.
CREATE INDEX agents_in_front ON agents (owner, lifecycle, last_active_at) WHERE kind IN ('connector', 'agent', 'subuser');

-- New fields of records, with their defaults.
UPDATE agents SET data = CAST(json_set(CAST(data AS TEXT), '$.config.effort', NULL) AS BLOB);
UPDATE sessions SET data = CAST(json_set(CAST(data AS TEXT), '$.effort', NULL) AS BLOB);

CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX schedules_of_owner ON schedules (owner, id);
CREATE INDEX schedules_by_agent ON schedules (agent_id);
CREATE INDEX schedules_changed ON schedules (updated_at) WHERE state <> 'ended';
