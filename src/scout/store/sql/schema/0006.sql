-- Awake agents in the order of their latest activity: the sweeper looks at those that were idle for long enough.
ALTER TABLE agents ADD COLUMN last_active_at INTEGER;
UPDATE agents SET
    last_active_at = coalesce(CAST(data AS TEXT) ->> '$.lastActiveAt', CAST(data AS TEXT) ->> '$.updatedAt'),
    data = CAST(json_set(CAST(data AS TEXT), '$.sleepingSince', NULL) AS BLOB);
CREATE INDEX agents_awake ON agents (coalesce(last_active_at, 0))
    WHERE lifecycle = 'active' AND kind NOT IN ('connector', 'system');
