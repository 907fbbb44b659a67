-- A redacted answer leaves its flight too: the text that a flight ended with is the only other part of a stored
-- event that may be emptied.
DROP TRIGGER events_as_they_are;
CREATE TRIGGER events_as_they_are BEFORE UPDATE ON events
WHEN (new.seq, new.first) IS NOT (old.seq, old.first)
    OR NOT EXISTS (
        SELECT 1 FROM json_each(CAST(old.data AS TEXT)) stored
        WHERE stored.value ->> '$.type' = 'collab.message.posted'
            AND new.data IS CAST(json_remove(
                json_set(CAST(old.data AS TEXT), stored.fullkey || '.payload.text', ''),
                stored.fullkey || '.payload.attachments') AS BLOB)
            OR stored.value ->> '$.payload.record.outputMessageId' IS NOT NULL
            AND new.data IS CAST(
                json_set(CAST(old.data AS TEXT), stored.fullkey || '.payload.record.output', '') AS BLOB)
    )
BEGIN
    SELECT raise(ABORT, 'a stored event is never rewritten');
END;
