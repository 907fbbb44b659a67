-- The log has one row for each request, as store/log.py describes. An event that is stored already becomes a row of
-- its own, byte for byte. The whole log is written once more, as the copy before a migration does.
DROP VIEW searched;
DROP TRIGGER events_stay;
DROP TRIGGER events_as_they_are;
CREATE TABLE packed (
    seq INTEGER PRIMARY KEY, -- the number of its last event
    first INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT;
INSERT INTO packed SELECT seq, seq, CAST('[' || CAST(data AS TEXT) || ']' AS BLOB) FROM events ORDER BY seq;

-- One index instead of three, fed behind the log with the history: the keys are those of store/touched.py.
-- `history_mark.touched`: it has every event up to here, also where the history is not that far.
CREATE TABLE touched (key TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (key, seq)) STRICT, WITHOUT ROWID;
INSERT INTO touched SELECT source, seq FROM events ORDER BY source, seq;
INSERT INTO touched SELECT agent_id, seq FROM concerned ORDER BY agent_id, seq;
INSERT INTO touched SELECT substr(target, instr(target, ':') + 1), seq FROM events
WHERE (target < 'conversation:' OR target >= 'conversation;') AND target NOT LIKE 'agent:%' ORDER BY target, seq;
INSERT INTO touched SELECT substr(id, 1, 14) || substr(id, 18), seq FROM events ORDER BY id;
ALTER TABLE history_mark ADD COLUMN touched INTEGER NOT NULL DEFAULT 0;
UPDATE history_mark SET touched = (SELECT coalesce(max(seq), 0) FROM events);
DROP TABLE concerned;

-- The events in the search index, and the rows of the log that they are in.
CREATE TABLE indexed_events (seq INTEGER PRIMARY KEY, log_row INTEGER NOT NULL) STRICT;
INSERT INTO indexed_events SELECT seq, seq FROM events
WHERE seq <= (SELECT seq FROM indexed)
    AND type IN ('collab.message.posted', 'collab.work_item.created', 'collab.work_item.updated')
ORDER BY seq;

DROP TABLE events;
ALTER TABLE packed RENAME TO events;

-- The log is only ever added to. The one exception empties the text of a posted message (redact.py).
CREATE TRIGGER events_stay BEFORE DELETE ON events BEGIN
    SELECT raise(ABORT, 'the log is append-only');
END;
CREATE TRIGGER events_as_they_are BEFORE UPDATE ON events
WHEN (new.seq, new.first) IS NOT (old.seq, old.first)
    OR NOT EXISTS (
        SELECT 1 FROM json_each(CAST(old.data AS TEXT)) posted
        WHERE posted.value ->> '$.type' = 'collab.message.posted'
            AND new.data IS CAST(json_remove(
                json_set(CAST(old.data AS TEXT), posted.fullkey || '.payload.text', ''),
                posted.fullkey || '.payload.attachments') AS BLOB)
    )
BEGIN
    SELECT raise(ABORT, 'a stored event is never rewritten');
END;

-- The words of an event, and the last 26 letters of the ids of those who may read it. The index keeps no
-- copy of them: an event does not change, so its words can be read again whenever they are needed.
CREATE VIEW searched (seq, text, places) AS
SELECT
    seq,
    CASE WHEN json_extract(data, place || '.payload.record.id') IS NULL
    THEN json_extract(data, place || '.payload.text')
    ELSE
        json_extract(data, place || '.payload.record.title')
        || char(10) || coalesce(json_extract(data, place || '.payload.record.description'), '')
        || char(10) || coalesce(json_extract(data, place || '.payload.record.progress.summary'), '')
    END,
    CASE WHEN json_extract(data, place || '.payload.record.id') IS NULL
    THEN substr(json_extract(data, place || '.target'), -26)
    ELSE
        substr(coalesce(json_extract(data, place || '.payload.record.conversationId'), ''), -26)
        || ' ' || substr(json_extract(data, place || '.payload.record.ownerId'), -26)
        || ' ' || substr(json_extract(data, place || '.payload.record.requesterId'), -26)
        || ' ' || substr(coalesce(json_extract(data, place || '.payload.record.nextMoveOwnerId'), ''), -26)
        || ' ' || substr(coalesce(json_extract(data, place || '.payload.record.reviewerId'), ''), -26)
    END
FROM (
    SELECT i.seq, CAST(e.data AS TEXT) AS data, '$[' || (i.seq - e.first) || ']' AS place
    FROM indexed_events i CROSS JOIN events e ON e.seq = i.log_row
);
