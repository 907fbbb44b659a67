-- The log is only ever added to. The one exception empties the text of a posted message (redact.py).
CREATE TRIGGER events_stay BEFORE DELETE ON events BEGIN
    SELECT raise(ABORT, 'the log is append-only');
END;
CREATE TRIGGER events_as_they_are BEFORE UPDATE ON events
WHEN old.type <> 'collab.message.posted'
    OR (new.seq, new.id, new.time, new.type, new.source, new.target)
        IS NOT (old.seq, old.id, old.time, old.type, old.source, old.target)
    OR new.data IS NOT CAST(
        json_remove(json_set(CAST(old.data AS TEXT), '$.payload.text', ''), '$.payload.attachments') AS BLOB)
BEGIN
    SELECT raise(ABORT, 'a stored event is never rewritten');
END;

-- Below: what no event explains. Listed in volatile.py; lost without harm, or rebuilt.

-- The words of an event, and the last 26 letters of the ids of those who may read it. The index keeps no
-- copy of them: an event does not change, so its words can be read again whenever they are needed.
CREATE VIEW searched (seq, text, places) AS
SELECT seq, data ->> '$.payload.text', substr(target, -26)
FROM (SELECT seq, target, CAST(data AS TEXT) AS data FROM events WHERE type = 'collab.message.posted')
UNION ALL
SELECT
    seq,
    concat.title || char(10) || concat.description || char(10) || concat.summary,
    concat.places
FROM (
    SELECT
        seq,
        record ->> '$.title' AS title,
        coalesce(record ->> '$.description', '') AS description,
        coalesce(record ->> '$.progress.summary', '') AS summary,
        substr(coalesce(record ->> '$.conversationId', ''), -26)
        || ' ' || substr(record ->> '$.ownerId', -26)
        || ' ' || substr(record ->> '$.requesterId', -26)
        || ' ' || substr(coalesce(record ->> '$.nextMoveOwnerId', ''), -26)
        || ' ' || substr(coalesce(record ->> '$.reviewerId', ''), -26) AS places
    FROM (
        SELECT seq, CAST(data AS TEXT) -> '$.payload.record' AS record FROM events
        WHERE type IN ('collab.work_item.created', 'collab.work_item.updated')
    )
) AS concat;

CREATE VIRTUAL TABLE search USING fts5(
    text, places, content = 'searched', content_rowid = 'seq', columnsize = 0,
    tokenize = 'unicode61 remove_diacritics 2'
);

-- How far the index has followed the log; `stale` while words taken out of it may still lie in its pages.
CREATE TABLE indexed (seq INTEGER NOT NULL, stale INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO indexed (seq) VALUES (0);

-- The event whose words stand in the index for a work item.
CREATE TABLE indexed_work (id TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE receipts (
    actor TEXT NOT NULL,
    operation TEXT NOT NULL,
    key TEXT NOT NULL,
    hash TEXT NOT NULL,
    answer BLOB NOT NULL,
    time INTEGER NOT NULL,
    PRIMARY KEY (actor, operation, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX receipts_by_time ON receipts (time);

CREATE TABLE looks (user TEXT PRIMARY KEY, time INTEGER NOT NULL) STRICT, WITHOUT ROWID;
