CREATE TABLE invitations (
    id TEXT PRIMARY KEY, state TEXT NOT NULL, expires_at INTEGER NOT NULL, data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX invitations_open ON invitations (expires_at) WHERE state = 'open';

-- The mirror: agents of other nodes, as their nodes list them. Fed from the mesh and not from the log.
CREATE TABLE remote_agents (
    id TEXT PRIMARY KEY,
    node_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    definition_id TEXT,
    workspace TEXT,
    profile TEXT,
    listed INTEGER NOT NULL, -- 0: retired, or no longer listed by its node; its name is still shown
    online INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX remote_agents_by_name ON remote_agents (definition_id, workspace, profile) WHERE listed = 1;
CREATE INDEX remote_agents_by_node ON remote_agents (definition_id, node_id) WHERE listed = 1;
CREATE INDEX remote_agents_of_node ON remote_agents (node_id);
CREATE INDEX remote_agents_named ON remote_agents (definition_id, id) WHERE listed = 1;
CREATE INDEX remote_agents_online ON remote_agents (definition_id, id) WHERE listed = 1 AND online = 1;
CREATE INDEX remote_agents_by_workspace ON remote_agents (workspace) WHERE listed = 1 AND workspace IS NOT NULL;

-- As endpoint_words, names and name_keys are for the agents of this node.
CREATE TABLE remote_words (
    agent_id TEXT NOT NULL, harness TEXT NOT NULL, word TEXT NOT NULL, PRIMARY KEY (agent_id, harness, word)
) STRICT, WITHOUT ROWID;
CREATE TABLE remote_names (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE remote_name_keys (
    key TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (key, name)
) STRICT, WITHOUT ROWID;
