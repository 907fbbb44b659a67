-- Who may read a stored file: those who stored it, and those who may read a message that carries it.
CREATE TABLE file_uploads (
    sha256 TEXT NOT NULL, agent_id TEXT NOT NULL, PRIMARY KEY (sha256, agent_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE file_messages (
    sha256 TEXT NOT NULL, message_id TEXT NOT NULL, PRIMARY KEY (sha256, message_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX file_messages_of ON file_messages (message_id);
INSERT OR IGNORE INTO file_messages
SELECT file.value ->> '$.sha256', m.id FROM messages m, json_each(CAST(m.data AS TEXT), '$.attachments') file;
