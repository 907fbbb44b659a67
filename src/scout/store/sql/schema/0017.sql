-- Archives: which part of the log is in which file, and the snapshot from which replay starts (store/archive).
CREATE TABLE archives (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX archives_in_order ON archives (kind, state, last);

-- A row leaves the log only if an archive has it and a snapshot has what follows from it.
DROP TRIGGER events_stay;
CREATE TRIGGER events_stay BEFORE DELETE ON events
WHEN NOT EXISTS (
        SELECT 1 FROM archives WHERE kind = 'events' AND state = 'kept' AND last >= old.seq AND first <= old.first
    )
    OR NOT EXISTS (SELECT 1 FROM archives WHERE kind = 'snapshot' AND state = 'kept' AND last >= old.seq)
BEGIN
    SELECT raise(ABORT, 'the log is append-only');
END;

-- The words of archived events, and what a search shows of them: a search reads no archive.
CREATE TABLE archived_words (
    seq INTEGER PRIMARY KEY,
    text TEXT,
    places TEXT,
    hit BLOB NOT NULL
) STRICT;
DROP VIEW searched;
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
)
UNION ALL
SELECT seq, text, places FROM archived_words;
