-- History: the states of records over time. Fed behind the log and rebuilt from it.
CREATE TABLE history_mark (seq INTEGER NOT NULL) STRICT; -- how far it has followed the log
INSERT INTO history_mark VALUES (0);

-- One row for each record, with the state it is in since the event `entered`. `record`: its first event.
CREATE TABLE history_records (
    record INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    entered INTEGER NOT NULL
) STRICT;
CREATE INDEX history_records_in ON history_records (kind, state, entered);
CREATE INDEX history_records_of ON history_records (kind); -- each index ends with the key of the table

-- One row for each event that changed a record: the record as it was is in that event.
CREATE TABLE history_versions (
    record INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (record, seq)
) STRICT, WITHOUT ROWID;

-- The states that records have left, from the event `entered` to the event `last`; `fork` as in base/intervals.py.
CREATE TABLE history_spans (
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    fork INTEGER NOT NULL,
    last INTEGER NOT NULL,
    entered INTEGER NOT NULL,
    record INTEGER NOT NULL,
    PRIMARY KEY (kind, state, fork, last, entered)
) STRICT, WITHOUT ROWID;
CREATE INDEX history_spans_from ON history_spans (kind, state, fork, entered, record);

-- The records that concern an agent or a user, or once did.
CREATE TABLE history_parties (
    party TEXT NOT NULL,
    kind TEXT NOT NULL,
    record INTEGER NOT NULL,
    PRIMARY KEY (party, kind, record)
) STRICT, WITHOUT ROWID;

-- The last event of each tenth of a second. Both columns rise together, also when the clock was set back.
CREATE TABLE history_moments (tenth INTEGER PRIMARY KEY, seq INTEGER NOT NULL) STRICT;
