-- Where an agent takes part in a talk of many, and how far it has nothing unread there: past what it has
-- read, what it said itself, and what was delivered to it. One row for each membership, none for each message.
CREATE TABLE followed (
    agent_id TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    read_seq INTEGER NOT NULL,
    PRIMARY KEY (agent_id, conversation_id)
) STRICT, WITHOUT ROWID;
INSERT INTO followed
SELECT m.agent_id, m.conversation_id, m.read_seq FROM members m JOIN conversations c ON c.id = m.conversation_id
WHERE m.left_at IS NULL AND c.kind <> 'dm';
UPDATE followed SET read_seq = coalesce((
    SELECT m.seq FROM messages m
    WHERE m.conversation_id = followed.conversation_id AND m.seq > followed.read_seq AND m.seq < coalesce((
        SELECT u.seq FROM messages u
        WHERE u.conversation_id = followed.conversation_id AND u.seq > followed.read_seq
            AND u.sender <> followed.agent_id
            AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.message_id = u.id AND d.target = followed.agent_id)
        ORDER BY u.seq LIMIT 1
    ), 1 << 62)
    ORDER BY m.seq DESC LIMIT 1
), read_seq);

-- The facts that concern an agent, in the order of the log.
CREATE TABLE concerned (
    agent_id TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (agent_id, seq)
) STRICT, WITHOUT ROWID;
INSERT OR IGNORE INTO concerned
SELECT named.value, facts.seq
FROM (
    SELECT
        seq,
        substr(source, instr(source, ':') + 1) AS source,
        substr(target, instr(target, ':') + 1) AS target,
        coalesce(CAST(data AS TEXT) -> '$.payload.record', CAST(data AS TEXT) -> '$.payload') AS record,
        CAST(data AS TEXT) -> '$.metadata.targetAgents' AS targets
    FROM events
) facts, json_each(json_insert(
    coalesce(facts.targets, '[]'),
    '$[#]', facts.source,
    '$[#]', facts.target,
    '$[#]', facts.record ->> '$.id',
    '$[#]', facts.record ->> '$.agentId',
    '$[#]', facts.record ->> '$.sender',
    '$[#]', facts.record ->> '$.target',
    '$[#]', facts.record ->> '$.requesterId',
    '$[#]', facts.record ->> '$.ownerId',
    '$[#]', facts.record ->> '$.nextMoveOwnerId',
    '$[#]', facts.record ->> '$.holderId',
    '$[#]', facts.record ->> '$.askerId',
    '$[#]', facts.record ->> '$.responderId'
)) named
WHERE named.value LIKE 'agt\_%' ESCAPE '\';
