-- Envelopes to other nodes. A row is open until the other node's receipt, or until it expires.
CREATE TABLE outbox (
    id TEXT PRIMARY KEY,
    node_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    conversation_id TEXT,
    delivery_id TEXT,
    state TEXT NOT NULL,
    next_attempt_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX outbox_queued ON outbox (node_id, id) WHERE state = 'queued';
CREATE INDEX outbox_unanswered ON outbox (node_id, next_attempt_at) WHERE state = 'forwarded';
CREATE INDEX outbox_in_order ON outbox (node_id, conversation_id, id) WHERE state IN ('queued', 'forwarded');
CREATE INDEX outbox_expiring ON outbox (expires_at) WHERE state IN ('queued', 'forwarded');
CREATE INDEX outbox_about ON outbox (subject, id);
CREATE INDEX outbox_of_delivery ON outbox (delivery_id) WHERE delivery_id IS NOT NULL;

-- Envelopes from other nodes, each taken once. `seq`: the event that tells what became of it.
CREATE TABLE envelopes_received (
    envelope_id TEXT PRIMARY KEY,
    node_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    subject TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX envelopes_received_about ON envelopes_received (subject, seq) WHERE subject IS NOT NULL;
