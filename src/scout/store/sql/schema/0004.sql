-- Attention is listed by risk, then in turn by agent: the first open items of all agents, then the second ones.
ALTER TABLE attention ADD COLUMN urgency INTEGER NOT NULL DEFAULT 2;
ALTER TABLE attention ADD COLUMN rank INTEGER NOT NULL DEFAULT 1;
ALTER TABLE attention ADD COLUMN allowance_id TEXT;
UPDATE attention SET
    urgency = CASE CAST(data AS TEXT) ->> '$.risk' WHEN 'high' THEN 0 WHEN 'medium' THEN 1 ELSE 2 END,
    data = CAST(json_set(
        CAST(data AS TEXT), '$.permission', NULL, '$.rank', 1, '$.allowanceId', NULL) AS BLOB);
CREATE INDEX attention_in_turn ON attention (user, urgency, rank, id) WHERE state IN ('open', 'notified');
CREATE INDEX attention_open_of_agents ON attention (user, agent_id, urgency, rank) WHERE state IN ('open', 'notified');
CREATE INDEX attention_let_through ON attention (allowance_id, id) WHERE allowance_id IS NOT NULL;

CREATE TABLE allowances (
    id TEXT PRIMARY KEY,
    user TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    state TEXT NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX allowances_of ON allowances (user, id);
CREATE INDEX allowances_active ON allowances (user, id) WHERE state = 'active';
CREATE INDEX allowances_about ON allowances (user, kind, subject, id) WHERE state = 'active';
