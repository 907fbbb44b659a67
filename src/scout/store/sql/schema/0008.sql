-- Reservations: advisory leases on files, found by their root when a file is edited.
CREATE TABLE reservations (
    id TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL,
    session_id TEXT,
    flight_id TEXT,
    root TEXT NOT NULL,
    state TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX reservations_active ON reservations (id) WHERE state = 'active';
CREATE INDEX reservations_in ON reservations (root, id) WHERE state = 'active';
CREATE INDEX reservations_of_agent ON reservations (agent_id, id) WHERE state = 'active';
CREATE INDEX reservations_of_session ON reservations (session_id) WHERE state = 'active';
CREATE INDEX reservations_of_flight ON reservations (flight_id) WHERE state = 'active';
CREATE INDEX reservations_expiring ON reservations (expires_at) WHERE state = 'active';
-- Flights by their end, newest first: those that overlapped another one.
CREATE INDEX flights_finished ON flights (finished_at) WHERE finished_at IS NOT NULL;
-- Agents that were spawned with a branch, by their work tree: a person who works there is the agent.
CREATE INDEX agents_by_work_tree ON agents (working_dir) WHERE kind = 'sub' AND birth_branch IS NOT NULL;
