BEGIN TRANSACTION;
CREATE TABLE agents (
    id TEXT PRIMARY KEY,
    owner TEXT,
    path TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    parent_id TEXT,
    definition_id TEXT,
    workspace TEXT,
    profile TEXT,
    node TEXT NOT NULL,
    project_root TEXT,
    working_dir TEXT,
    birth_branch TEXT,
    lifecycle TEXT NOT NULL,
    wake_policy TEXT NOT NULL,
    data BLOB NOT NULL
, last_active_at INTEGER) STRICT, WITHOUT ROWID;
INSERT INTO "agents" VALUES('agt_209z7v756jg6cvdpaz3wvbtazb','me','/me/agent/arc~mini','agent',NULL,'arc',NULL,NULL,'mini',NULL,NULL,NULL,'active','on_demand',X'7B226964223A226167745F3230397A37763735366A673663766470617A3377766274617A62222C22637265617465644174223A313730303030303030303030303030302C22757064617465644174223A313730303030303030303030303030302C226F776E6572223A226D65222C2270617468223A222F6D652F6167656E742F6172637E6D696E69222C226B696E64223A226167656E74222C22646566696E6974696F6E4964223A22617263222C226E6F6465223A226D696E69222C22637265617465644279223A2274657374227D',NULL);
CREATE TABLE aliases (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    name TEXT NOT NULL,
    agent_id TEXT,
    session_id TEXT,
    until_session_ends INTEGER NOT NULL,
    state TEXT NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE allowances (
    id TEXT PRIMARY KEY,
    user TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    state TEXT NOT NULL,
    data BLOB NOT NULL
, session_id TEXT) STRICT, WITHOUT ROWID;
CREATE TABLE asks (
    id TEXT PRIMARY KEY,
    message_id TEXT NOT NULL,
    sender TEXT NOT NULL,
    target TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE attention (
    id TEXT PRIMARY KEY,
    user TEXT NOT NULL,
    agent_id TEXT,
    state TEXT NOT NULL,
    dedupe TEXT,
    expires_at INTEGER,
    data BLOB NOT NULL
, urgency INTEGER NOT NULL DEFAULT 2, rank INTEGER NOT NULL DEFAULT 1, allowance_id TEXT) STRICT, WITHOUT ROWID;
CREATE TABLE bindings (
    id TEXT PRIMARY KEY,
    surface TEXT NOT NULL,
    name TEXT NOT NULL,
    external_id TEXT NOT NULL,
    topic_id TEXT,
    conversation_id TEXT,
    agent_id TEXT,
    user TEXT,
    state TEXT NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE cards (
    id TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL,
    created_by TEXT NOT NULL,
    state TEXT NOT NULL,
    expires_at INTEGER,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE chat_cursors (connector TEXT PRIMARY KEY, cursor TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE chat_parts (
    connector TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    external_id TEXT NOT NULL,
    post_id TEXT NOT NULL,
    PRIMARY KEY (connector, chat_id, external_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE chat_posts (
    id TEXT PRIMARY KEY,
    connector TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    user TEXT NOT NULL,
    message_id TEXT,
    attention_id TEXT,
    state TEXT NOT NULL,
    next_attempt_at INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE chat_received (
    connector TEXT NOT NULL,
    inbound_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    chat_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    external_id TEXT,
    message_id TEXT,
    asks INTEGER NOT NULL,
    PRIMARY KEY (connector, inbound_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE chat_strangers (
    connector TEXT NOT NULL,
    hashed TEXT NOT NULL,
    day TEXT NOT NULL,
    PRIMARY KEY (connector, hashed, day)
) STRICT, WITHOUT ROWID;
CREATE TABLE connector_keys (
    id TEXT PRIMARY KEY, connector TEXT NOT NULL, external_id TEXT NOT NULL, user TEXT NOT NULL, state TEXT NOT NULL, data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE conversations (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    owner TEXT,
    name TEXT,
    parent_id TEXT,
    archived_at INTEGER,
    created_at INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE deliveries (
    id TEXT PRIMARY KEY,
    target TEXT NOT NULL,
    state TEXT NOT NULL,
    wake INTEGER NOT NULL,
    delegates INTEGER NOT NULL,
    next_attempt_at INTEGER NOT NULL,
    leased_until INTEGER,
    conversation_id TEXT,
    message_id TEXT,
    flight_id TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE endpoint_words (
    agent_id TEXT NOT NULL,
    harness TEXT NOT NULL, -- '' when the endpoint names none
    word TEXT NOT NULL,    -- a text that asks for its model; '' asks for none
    endpoint_id TEXT NOT NULL,
    PRIMARY KEY (agent_id, harness, word, endpoint_id)
) STRICT, WITHOUT ROWID;
INSERT INTO "endpoint_words" VALUES('agt_209z7v756jg6cvdpaz3wvbtazb','codex','','ept_1zf6xqpgtvgms9cmetxz9q9ke6');
INSERT INTO "endpoint_words" VALUES('agt_209z7v756jg6cvdpaz3wvbtazb','codex','5-5','ept_1zf6xqpgtvgms9cmetxz9q9ke6');
INSERT INTO "endpoint_words" VALUES('agt_209z7v756jg6cvdpaz3wvbtazb','codex','gpt-5-5','ept_1zf6xqpgtvgms9cmetxz9q9ke6');
CREATE TABLE endpoints (
    id TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL,
    session_id TEXT,
    state TEXT NOT NULL,
    last_seen INTEGER,
    held INTEGER NOT NULL,
    wake_policy TEXT,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "endpoints" VALUES('ept_1zf6xqpgtvgms9cmetxz9q9ke6','agt_209z7v756jg6cvdpaz3wvbtazb',NULL,'idle',1700000000000000,0,NULL,X'7B226964223A226570745F317A6636787170677476676D7339636D6574787A3971396B6536222C22637265617465644174223A313730303030303030303030303030302C22757064617465644174223A313730303030303030303030303030302C226167656E744964223A226167745F3230397A37763735366A673663766470617A3377766274617A62222C226E6F6465223A226D696E69222C226861726E657373223A22636F646578222C226D6F64656C223A226770742D352E35222C227472616E73706F7274223A2270726F63657373222C227374617465223A2269646C65222C226C6173745365656E223A313730303030303030303030303030307D');
CREATE TABLE envelopes_received (
    envelope_id TEXT PRIMARY KEY,
    node_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    subject TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE "events" (
    seq INTEGER PRIMARY KEY, -- the number of its last event
    first INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT;
INSERT INTO "events" VALUES(1,1,X'5B7B2274797065223A22636F6C6C61622E6167656E742E72656769737465726564222C226964223A226576745F3267737A61347965317A67747839396A6D38677A726638337663222C2274696D65223A313730303030303030303030303030302C22736F75726365223A226167656E743A6167745F357672716B3633723836677665396871336474363334616B3166222C227061796C6F6164223A7B226D6F7665223A227265676973746572222C226279223A6E756C6C2C227265636F7264223A7B226964223A226167745F3230397A37763735366A673663766470617A3377766274617A62222C22637265617465644174223A313730303030303030303030303030302C22757064617465644174223A313730303030303030303030303030302C226F776E6572223A226D65222C2270617468223A222F6D652F6167656E742F6172637E6D696E69222C226B696E64223A226167656E74222C22646566696E6974696F6E4964223A22617263222C226E6F6465223A226D696E69222C22637265617465644279223A2274657374227D7D7D5D');
INSERT INTO "events" VALUES(2,2,X'5B7B2274797065223A22636F6C6C61622E656E64706F696E742E72656769737465726564222C226964223A226576745F3278706E72656E77687167667A76636E7267376A33366B326667222C2274696D65223A313730303030303030303030303030302C22736F75726365223A226167656E743A6167745F357672716B3633723836677665396871336474363334616B3166222C227061796C6F6164223A7B226D6F7665223A227265676973746572222C226279223A6E756C6C2C227265636F7264223A7B226964223A226570745F317A6636787170677476676D7339636D6574787A3971396B6536222C22637265617465644174223A313730303030303030303030303030302C22757064617465644174223A313730303030303030303030303030302C226167656E744964223A226167745F3230397A37763735366A673663766470617A3377766274617A62222C226E6F6465223A226D696E69222C226861726E657373223A22636F646578222C226D6F64656C223A226770742D352E35222C227472616E73706F7274223A2270726F63657373222C227374617465223A2269646C65222C226C6173745365656E223A313730303030303030303030303030307D7D7D5D');
INSERT INTO "events" VALUES(3,3,X'5B7B2274797065223A22636F6C6C61622E6D6573736167652E706F73746564222C226964223A226576745F337176636D303876727267376D74626B3873367A6B6534346D64222C2274696D65223A313730303030303030303030303030302C22736F75726365223A226167656E743A6167745F357672716B3633723836677665396871336474363334616B3166222C22746172676574223A22636F6E766572736174696F6E3A636E765F33706A62317474646130686530627230676237627136646B6338222C227061796C6F6164223A7B226D6573736167654964223A226D73675F31766737716A6265616767347174326B7367746B706D63637661222C2274657874223A22746865207061727365722064726F7073206120636F6D6D61222C226B696E64223A2263686174227D7D5D');
INSERT INTO "events" VALUES(4,4,X'5B7B2274797065223A22636F6C6C61622E6D6573736167652E706F73746564222C226964223A226576745F336B7779736238393872676B32733967776D766B7268737A3237222C2274696D65223A313730303030303030303030303030302C22736F75726365223A226167656E743A6167745F357672716B3633723836677665396871336474363334616B3166222C22746172676574223A22636F6E766572736174696F6E3A636E765F33706A62317474646130686530627230676237627136646B6338222C227061796C6F6164223A7B226D6573736167654964223A226D73675F34706B7A61333563767767797461787831366D67787979717078222C2274657874223A226974E2809973206669786564206E6F77222C226B696E64223A2263686174227D7D5D');
INSERT INTO "events" VALUES(5,5,X'5B7B2274797065223A22636F6C6C61622E776F726B5F6974656D2E63726561746564222C226964223A226576745F367A647934733577666368386D616B316D686D77356633786579222C2274696D65223A313730303030303030303030303030302C22736F75726365223A226167656E743A6167745F357672716B3633723836677665396871336474363334616B3166222C227061796C6F6164223A7B226279223A6E756C6C2C227265636F7264223A7B226964223A2277726B5F32677777677939373031687730386362376E6B776770366E3161222C22637265617465644174223A313730303030303030303030303030302C22757064617465644174223A313730303030303030303030303030302C227469746C65223A226669782074686520706172736572222C227265717565737465724964223A226167745F3230397A37763735366A673663766470617A3377766274617A62222C226F776E65724964223A226167745F3230397A37763735366A673663766470617A3377766274617A62222C226E6578744D6F76654F776E65724964223A226167745F3230397A37763735366A673663766470617A3377766274617A62227D7D7D5D');
CREATE TABLE file_messages (
    sha256 TEXT NOT NULL, message_id TEXT NOT NULL, PRIMARY KEY (sha256, message_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE file_uploads (
    sha256 TEXT NOT NULL, agent_id TEXT NOT NULL, PRIMARY KEY (sha256, agent_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE flights (
    id TEXT PRIMARY KEY,
    ask_id TEXT NOT NULL,
    target TEXT NOT NULL,
    requester_id TEXT NOT NULL,
    state TEXT NOT NULL,
    next_check_at INTEGER,
    finished_at INTEGER,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE followed (
    agent_id TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    read_seq INTEGER NOT NULL,
    PRIMARY KEY (agent_id, conversation_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE grants (
    id TEXT PRIMARY KEY, agent_id TEXT, user TEXT, state TEXT NOT NULL, expires_at INTEGER, data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE history_mark (seq INTEGER NOT NULL, touched INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO "history_mark" VALUES(0,0);
CREATE TABLE history_moments (tenth INTEGER PRIMARY KEY, seq INTEGER NOT NULL) STRICT;
CREATE TABLE history_parties (
    party TEXT NOT NULL,
    kind TEXT NOT NULL,
    record INTEGER NOT NULL,
    PRIMARY KEY (party, kind, record)
) STRICT, WITHOUT ROWID;
CREATE TABLE history_records (
    record INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    entered INTEGER NOT NULL
) STRICT;
CREATE TABLE history_spans (
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    fork INTEGER NOT NULL,
    last INTEGER NOT NULL,
    entered INTEGER NOT NULL,
    record INTEGER NOT NULL,
    PRIMARY KEY (kind, state, fork, last, entered)
) STRICT, WITHOUT ROWID;
CREATE TABLE history_versions (
    record INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (record, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE indexed (seq INTEGER NOT NULL, stale INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO "indexed" VALUES(0,0);
CREATE TABLE indexed_events (seq INTEGER PRIMARY KEY, log_row INTEGER NOT NULL) STRICT;
CREATE TABLE indexed_work (id TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE invitations (
    id TEXT PRIMARY KEY, state TEXT NOT NULL, expires_at INTEGER NOT NULL, data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE link_attempts (connector TEXT NOT NULL, chat TEXT NOT NULL, time INTEGER NOT NULL) STRICT;
CREATE TABLE link_codes (
    id TEXT PRIMARY KEY,
    hashed TEXT NOT NULL UNIQUE,
    user TEXT NOT NULL,
    connector TEXT NOT NULL,
    state TEXT NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE looks (user TEXT PRIMARY KEY, time INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE members (
    id TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    read_seq INTEGER NOT NULL,
    left_at INTEGER,
    created_at INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (conversation_id, agent_id) -- the members of a conversation lie on one page
) STRICT, WITHOUT ROWID;
CREATE TABLE messages (
    id TEXT PRIMARY KEY,
    conversation_id TEXT NOT NULL,
    sender TEXT NOT NULL,
    seq INTEGER NOT NULL,
    in_reply_to TEXT,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "messages" VALUES('msg_1vg7qjbeagg4qt2ksgtkpmccva','cnv_3pjb1ttda0he0br0gb7bq6dkc8','agt_5vrqk63r86gve9hq3dt634ak1f',3,NULL,X'7B226964223A226D73675F31766737716A6265616767347174326B7367746B706D63637661222C22736571223A332C22636F6E766572736174696F6E4964223A22636E765F33706A62317474646130686530627230676237627136646B6338222C2273656E646572223A226167745F357672716B3633723836677665396871336474363334616B3166222C22626F6479223A22746865207061727365722064726F7073206120636F6D6D61222C22637265617465644174223A313730303030303030303030303030307D');
INSERT INTO "messages" VALUES('msg_4pkza35cvwgytaxx16mgxyyqpx','cnv_3pjb1ttda0he0br0gb7bq6dkc8','agt_5vrqk63r86gve9hq3dt634ak1f',4,NULL,X'7B226964223A226D73675F34706B7A61333563767767797461787831366D67787979717078222C22736571223A342C22636F6E766572736174696F6E4964223A22636E765F33706A62317474646130686530627230676237627136646B6338222C2273656E646572223A226167745F357672716B3633723836677665396871336474363334616B3166222C22626F6479223A226974E2809973206669786564206E6F77222C22637265617465644174223A313730303030303030303030303030307D');
CREATE TABLE name_keys (key TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (key, name)) STRICT, WITHOUT ROWID;
INSERT INTO "name_keys" VALUES('ac','arc');
INSERT INTO "name_keys" VALUES('ar','arc');
INSERT INTO "name_keys" VALUES('arc','arc');
INSERT INTO "name_keys" VALUES('rc','arc');
CREATE TABLE names (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
INSERT INTO "names" VALUES('arc');
CREATE TABLE native_sessions (
    harness TEXT NOT NULL,
    native_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    PRIMARY KEY (harness, native_id, session_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE nodes (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, local INTEGER NOT NULL, state TEXT NOT NULL, data BLOB NOT NULL) STRICT, WITHOUT ROWID;
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
CREATE TABLE questions (
    id TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    asker_id TEXT NOT NULL,
    responder_id TEXT NOT NULL,
    next_move_owner_id TEXT,
    message_id TEXT,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE reachable (
    definition_id TEXT NOT NULL, agent_id TEXT NOT NULL, PRIMARY KEY (definition_id, agent_id)
) STRICT, WITHOUT ROWID;
INSERT INTO "reachable" VALUES('arc','agt_209z7v756jg6cvdpaz3wvbtazb');
CREATE TABLE receipts (
    actor TEXT NOT NULL,
    operation TEXT NOT NULL,
    key TEXT NOT NULL,
    hash TEXT NOT NULL,
    answer BLOB NOT NULL,
    time INTEGER NOT NULL,
    PRIMARY KEY (actor, operation, key)
) STRICT, WITHOUT ROWID;
CREATE TABLE remote_agents (
    id TEXT PRIMARY KEY,
    node_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    definition_id TEXT,
    workspace TEXT,
    profile TEXT,
    listed INTEGER NOT NULL, -- 0: retired, or no longer listed by its node; its name is still shown
    online INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE remote_name_keys (
    key TEXT NOT NULL, name TEXT NOT NULL, PRIMARY KEY (key, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE remote_names (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TABLE remote_words (
    agent_id TEXT NOT NULL, harness TEXT NOT NULL, word TEXT NOT NULL, PRIMARY KEY (agent_id, harness, word)
) STRICT, WITHOUT ROWID;
CREATE TABLE reservations (
    id TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL,
    session_id TEXT,
    flight_id TEXT,
    root TEXT NOT NULL,
    state TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE schedules (id TEXT PRIMARY KEY, state TEXT NOT NULL, data BLOB NOT NULL, owner TEXT NOT NULL DEFAULT '', agent_id TEXT NOT NULL DEFAULT '', next_at INTEGER, updated_at INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;
PRAGMA writable_schema=ON;
INSERT INTO sqlite_master(type,name,tbl_name,rootpage,sql)VALUES('table','search','search',0,'CREATE VIRTUAL TABLE search USING fts5(
    text, places, content = ''searched'', content_rowid = ''seq'', columnsize = 0,
    tokenize = ''unicode61 remove_diacritics 2''
)');
CREATE TABLE 'search_config'(k PRIMARY KEY, v) WITHOUT ROWID;
INSERT INTO "search_config" VALUES('version',4);
CREATE TABLE 'search_data'(id INTEGER PRIMARY KEY, block BLOB);
INSERT INTO "search_data" VALUES(1,X'');
INSERT INTO "search_data" VALUES(10,X'00000000000000');
CREATE TABLE 'search_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID;
CREATE TABLE sessions (
    id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, state TEXT NOT NULL, data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE sweeps (
    id TEXT PRIMARY KEY,
    period TEXT NOT NULL, -- the setting after which it is overdue
    since INTEGER NOT NULL,
    nudges INTEGER NOT NULL,
    nudged_at INTEGER,
    next_at INTEGER
) STRICT, WITHOUT ROWID;
INSERT INTO "sweeps" VALUES('wrk_2gwwgy9701hw08cb7nkwgp6n1a','work_open',1700000000000000,0,NULL,NULL);
CREATE TABLE tokens (
    id TEXT PRIMARY KEY, hashed TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, agent_id TEXT, session_id TEXT, state TEXT NOT NULL, expires_at INTEGER, data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE touched (key TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (key, seq)) STRICT, WITHOUT ROWID;
CREATE TABLE usage (
    id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, category TEXT NOT NULL, created_at INTEGER NOT NULL, data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE usage_days (
    day TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    category TEXT NOT NULL,
    harness TEXT NOT NULL, -- '' when the report names none
    model TEXT NOT NULL,
    reports INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    total_tokens INTEGER NOT NULL,
    estimated_tokens INTEGER NOT NULL,
    dispatch_attempts INTEGER NOT NULL,
    wake_failures INTEGER NOT NULL,
    diagnostics_generated INTEGER NOT NULL,
    orientation_commands_avoided INTEGER NOT NULL,
    PRIMARY KEY (day, agent_id, category, harness, model)
) STRICT, WITHOUT ROWID;
CREATE TABLE users (id TEXT PRIMARY KEY, name TEXT NOT NULL, operator INTEGER NOT NULL, state TEXT NOT NULL, data BLOB NOT NULL, owner TEXT) STRICT, WITHOUT ROWID;
CREATE TABLE work_items (
    id TEXT PRIMARY KEY,
    owner_id TEXT NOT NULL,
    requester_id TEXT NOT NULL,
    next_move_owner_id TEXT,
    state TEXT NOT NULL,
    awaits TEXT, -- the work item that it waits for
    settled_at INTEGER,
    data BLOB NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "work_items" VALUES('wrk_2gwwgy9701hw08cb7nkwgp6n1a','agt_209z7v756jg6cvdpaz3wvbtazb','agt_209z7v756jg6cvdpaz3wvbtazb','agt_209z7v756jg6cvdpaz3wvbtazb','open',NULL,NULL,X'7B226964223A2277726B5F32677777677939373031687730386362376E6B776770366E3161222C22637265617465644174223A313730303030303030303030303030302C22757064617465644174223A313730303030303030303030303030302C227469746C65223A226669782074686520706172736572222C227265717565737465724964223A226167745F3230397A37763735366A673663766470617A3377766274617A62222C226F776E65724964223A226167745F3230397A37763735366A673663766470617A3377766274617A62222C226E6578744D6F76654F776E65724964223A226167745F3230397A37763735366A673663766470617A3377766274617A62227D');
CREATE TABLE work_relations (
    work_item_id TEXT NOT NULL, from_id TEXT NOT NULL, kind TEXT NOT NULL, PRIMARY KEY (work_item_id, from_id, kind)
) STRICT, WITHOUT ROWID;
CREATE INDEX agents_by_name ON agents (definition_id, workspace, profile, node);
CREATE INDEX agents_by_definition ON agents (definition_id, id);
CREATE INDEX agents_by_owner ON agents (owner, id);
CREATE INDEX agents_by_parent ON agents (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX agents_by_root ON agents (project_root) WHERE project_root IS NOT NULL;
CREATE INDEX agents_by_node ON agents (definition_id, node);
CREATE INDEX agents_by_project ON agents (definition_id, project_root);
CREATE INDEX agents_by_workspace ON agents (workspace) WHERE workspace IS NOT NULL;
CREATE INDEX agents_by_directory ON agents (coalesce(working_dir, project_root))
    WHERE kind = 'agent' AND profile IS NULL;
CREATE UNIQUE INDEX agents_by_branch ON agents (project_root, birth_branch) WHERE birth_branch IS NOT NULL;
CREATE UNIQUE INDEX agents_live_name
    ON agents (definition_id, coalesce(workspace, ''), coalesce(profile, ''), node)
    WHERE definition_id IS NOT NULL AND lifecycle <> 'retired';
CREATE INDEX agents_kept_warm ON agents (id) WHERE wake_policy = 'keep_warm' AND lifecycle <> 'retired';
CREATE INDEX endpoints_by_agent ON endpoints (agent_id);
CREATE INDEX endpoints_of_session ON endpoints (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX endpoints_silent ON endpoints (last_seen) WHERE held = 0 AND state IN ('idle', 'working');
CREATE INDEX endpoints_held ON endpoints (id) WHERE held = 1 AND state IN ('waking', 'idle', 'working');
CREATE INDEX endpoints_kept_warm ON endpoints (agent_id) WHERE wake_policy = 'keep_warm' AND state <> 'stopped';
CREATE INDEX sessions_by_agent ON sessions (agent_id, id);
CREATE INDEX sessions_running ON sessions (id) WHERE state IN ('starting', 'live');
CREATE INDEX conversations_of_owner ON conversations (owner, created_at) WHERE kind = 'channel' AND archived_at IS NULL;
CREATE INDEX members_by_agent ON members (agent_id, created_at) WHERE left_at IS NULL;
CREATE INDEX messages_by_conversation ON messages (conversation_id, seq);
CREATE INDEX messages_by_question ON messages (in_reply_to, seq) WHERE in_reply_to IS NOT NULL;
CREATE INDEX asks_by_sender ON asks (sender, created_at);
CREATE INDEX asks_by_message ON asks (message_id);
CREATE INDEX flights_by_ask ON flights (ask_id, id);
CREATE INDEX flights_by_target ON flights (target, id);
CREATE INDEX flights_by_requester ON flights (requester_id, id);
CREATE INDEX flights_open_at ON flights (target, id) WHERE finished_at IS NULL;
CREATE INDEX flights_open_for ON flights (requester_id, id) WHERE finished_at IS NULL;
CREATE INDEX flights_finished_for ON flights (requester_id, finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX flights_due ON flights (next_check_at) WHERE next_check_at IS NOT NULL;
CREATE INDEX deliveries_expiring ON deliveries (expires_at) WHERE state = 'pending' AND expires_at IS NOT NULL;
CREATE INDEX deliveries_settled ON deliveries (target, id) WHERE state IN ('acked', 'dead_lettered', 'cancelled');
CREATE INDEX deliveries_open ON deliveries (target, id) WHERE state IN ('pending', 'leased');
CREATE INDEX deliveries_due ON deliveries (next_attempt_at) WHERE state = 'pending' AND wake = 1;
CREATE INDEX deliveries_leased ON deliveries (leased_until) WHERE state = 'leased';
CREATE INDEX deliveries_wakes ON deliveries (conversation_id, created_at) WHERE wake = 1;
CREATE INDEX deliveries_delegating ON deliveries (created_at) WHERE delegates = 1;
CREATE INDEX deliveries_by_flight ON deliveries (flight_id) WHERE flight_id IS NOT NULL;
CREATE INDEX deliveries_by_message ON deliveries (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX questions_owed ON questions (next_move_owner_id, id) WHERE next_move_owner_id IS NOT NULL;
CREATE INDEX questions_by_message ON questions (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX questions_by_asker ON questions (asker_id, id);
CREATE INDEX questions_by_responder ON questions (responder_id, id);
CREATE INDEX questions_open_by_asker ON questions (asker_id, id) WHERE next_move_owner_id IS NOT NULL;
CREATE INDEX work_items_by_owner ON work_items (owner_id, id);
CREATE INDEX work_items_by_requester ON work_items (requester_id, id);
CREATE INDEX work_items_owed ON work_items (next_move_owner_id, id) WHERE settled_at IS NULL;
CREATE INDEX work_items_open ON work_items (id) WHERE settled_at IS NULL;
CREATE INDEX work_items_open_by_owner ON work_items (owner_id, id) WHERE settled_at IS NULL;
CREATE INDEX work_items_open_by_requester ON work_items (requester_id, id) WHERE settled_at IS NULL;
CREATE INDEX work_items_awaiting ON work_items (awaits) WHERE awaits IS NOT NULL;
CREATE INDEX attention_of ON attention (user, id);
CREATE INDEX attention_open ON attention (user, id) WHERE state IN ('open', 'notified');
CREATE INDEX attention_untold ON attention (user, id) WHERE state = 'open';
CREATE INDEX attention_by_agent ON attention (agent_id, id) WHERE agent_id IS NOT NULL;
CREATE INDEX attention_open_by_agent ON attention (agent_id, id) WHERE state IN ('open', 'notified');
CREATE INDEX attention_expiring ON attention (expires_at)
    WHERE state IN ('open', 'notified') AND expires_at IS NOT NULL;
CREATE UNIQUE INDEX attention_same ON attention (dedupe, user)
    WHERE dedupe IS NOT NULL AND state IN ('open', 'notified');
CREATE INDEX cards_by_maker ON cards (created_by, id);
CREATE INDEX cards_expiring ON cards (expires_at) WHERE state = 'active' AND expires_at IS NOT NULL;
CREATE INDEX aliases_of_sessions ON aliases (session_id) WHERE until_session_ends = 1 AND state <> 'removed';
CREATE INDEX aliases_by_agent ON aliases (agent_id, owner) WHERE agent_id IS NOT NULL;
CREATE UNIQUE INDEX aliases_by_name ON aliases (owner, name) WHERE state <> 'removed';
CREATE INDEX aliases_of ON aliases (owner, id) WHERE state <> 'removed';
CREATE INDEX usage_by_agent ON usage (agent_id, created_at);
CREATE UNIQUE INDEX users_operator ON users (operator) WHERE operator = 1;
CREATE UNIQUE INDEX connector_keys_by_name ON connector_keys (connector, external_id) WHERE state = 'active';
CREATE UNIQUE INDEX nodes_local ON nodes (local) WHERE local = 1;
CREATE INDEX tokens_expiring ON tokens (expires_at) WHERE state = 'active' AND expires_at IS NOT NULL;
CREATE INDEX tokens_by_agent ON tokens (agent_id) WHERE agent_id IS NOT NULL AND state = 'active';
CREATE INDEX tokens_by_session ON tokens (session_id) WHERE session_id IS NOT NULL AND state = 'active';
CREATE INDEX grants_expiring ON grants (expires_at) WHERE state = 'active' AND expires_at IS NOT NULL;
CREATE INDEX grants_by_agent ON grants (agent_id) WHERE state = 'active' AND agent_id IS NOT NULL;
CREATE INDEX grants_by_user ON grants (user) WHERE state = 'active' AND user IS NOT NULL;
CREATE INDEX sweeps_first ON sweeps (period, since) WHERE nudges = 0;
CREATE INDEX sweeps_next ON sweeps (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX endpoint_words_by_endpoint ON endpoint_words (endpoint_id);
CREATE INDEX reachable_by_agent ON reachable (agent_id);
CREATE INDEX receipts_by_time ON receipts (time);
CREATE INDEX attention_in_turn ON attention (user, urgency, rank, id) WHERE state IN ('open', 'notified');
CREATE INDEX attention_open_of_agents ON attention (user, agent_id, urgency, rank) WHERE state IN ('open', 'notified');
CREATE INDEX attention_let_through ON attention (allowance_id, id) WHERE allowance_id IS NOT NULL;
CREATE INDEX allowances_of ON allowances (user, id);
CREATE INDEX allowances_active ON allowances (user, id) WHERE state = 'active';
CREATE INDEX allowances_about ON allowances (user, kind, subject, id) WHERE state = 'active';
CREATE INDEX file_messages_of ON file_messages (message_id);
CREATE INDEX flights_open ON flights (id) WHERE finished_at IS NULL;
CREATE INDEX reservations_active ON reservations (id) WHERE state = 'active';
CREATE INDEX reservations_in ON reservations (root, id) WHERE state = 'active';
CREATE INDEX reservations_of_agent ON reservations (agent_id, id) WHERE state = 'active';
CREATE INDEX reservations_of_session ON reservations (session_id) WHERE state = 'active';
CREATE INDEX reservations_of_flight ON reservations (flight_id) WHERE state = 'active';
CREATE INDEX reservations_expiring ON reservations (expires_at) WHERE state = 'active';
CREATE INDEX flights_finished ON flights (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX agents_by_work_tree ON agents (working_dir) WHERE kind = 'sub' AND birth_branch IS NOT NULL;
CREATE UNIQUE INDEX users_by_name ON users (name);
CREATE INDEX users_by_owner ON users (owner, id) WHERE owner IS NOT NULL;
CREATE INDEX connector_keys_of_user ON connector_keys (user, id);
CREATE UNIQUE INDEX link_codes_open ON link_codes (user, connector) WHERE state = 'open';
CREATE INDEX link_attempts_in ON link_attempts (connector, time, chat);
CREATE UNIQUE INDEX bindings_by_place ON bindings (surface, name, external_id, coalesce(topic_id, ''))
    WHERE state = 'active';
CREATE INDEX bindings_of_user ON bindings (user, id);
CREATE INDEX bindings_of_conversation ON bindings (conversation_id) WHERE state = 'active';
CREATE INDEX bindings_of_agent ON bindings (agent_id) WHERE state = 'active';
CREATE INDEX agents_awake ON agents (coalesce(last_active_at, 0))
    WHERE lifecycle = 'active' AND kind <> 'system' AND path <> '/' || coalesce(owner, '') || '/direct';
CREATE INDEX chat_posts_queued ON chat_posts (connector, next_attempt_at) WHERE state = 'queued';
CREATE INDEX chat_posts_sending ON chat_posts (connector) WHERE state = 'sending';
CREATE INDEX chat_posts_of_attention ON chat_posts (attention_id) WHERE attention_id IS NOT NULL;
CREATE INDEX chat_posts_of_message ON chat_posts (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX chat_posts_of_user ON chat_posts (user, id);
CREATE INDEX chat_received_as ON chat_received (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX chat_received_from ON chat_received (connector, chat_id, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX chat_received_asks ON chat_received (connector, chat_id, thread_id, seq) WHERE asks = 1;
CREATE INDEX allowances_of_session ON allowances (session_id) WHERE session_id IS NOT NULL AND state = 'active';
CREATE INDEX agents_tasks ON agents (owner, id) WHERE kind = 'task';
CREATE INDEX agents_in_front ON agents (owner, lifecycle, last_active_at) WHERE kind IN ('connector', 'agent', 'subuser');
CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX schedules_of_owner ON schedules (owner, id);
CREATE INDEX schedules_by_agent ON schedules (agent_id);
CREATE INDEX schedules_changed ON schedules (updated_at) WHERE state <> 'ended';
CREATE INDEX history_records_in ON history_records (kind, state, entered);
CREATE INDEX history_records_of ON history_records (kind);
CREATE INDEX history_spans_from ON history_spans (kind, state, fork, entered, record);
CREATE TRIGGER events_stay BEFORE DELETE ON events BEGIN
    SELECT raise(ABORT, 'the log is append-only');
END;
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
CREATE INDEX invitations_open ON invitations (expires_at) WHERE state = 'open';
CREATE INDEX remote_agents_by_name ON remote_agents (definition_id, workspace, profile) WHERE listed = 1;
CREATE INDEX remote_agents_by_node ON remote_agents (definition_id, node_id) WHERE listed = 1;
CREATE INDEX remote_agents_of_node ON remote_agents (node_id);
CREATE INDEX remote_agents_named ON remote_agents (definition_id, id) WHERE listed = 1;
CREATE INDEX remote_agents_online ON remote_agents (definition_id, id) WHERE listed = 1 AND online = 1;
CREATE INDEX remote_agents_by_workspace ON remote_agents (workspace) WHERE listed = 1 AND workspace IS NOT NULL;
CREATE INDEX outbox_queued ON outbox (node_id, id) WHERE state = 'queued';
CREATE INDEX outbox_unanswered ON outbox (node_id, next_attempt_at) WHERE state = 'forwarded';
CREATE INDEX outbox_in_order ON outbox (node_id, conversation_id, id) WHERE state IN ('queued', 'forwarded');
CREATE INDEX outbox_expiring ON outbox (expires_at) WHERE state IN ('queued', 'forwarded');
CREATE INDEX outbox_about ON outbox (subject, id);
CREATE INDEX outbox_of_delivery ON outbox (delivery_id) WHERE delivery_id IS NOT NULL;
CREATE INDEX envelopes_received_about ON envelopes_received (subject, seq) WHERE subject IS NOT NULL;
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
CREATE INDEX envelopes_received_in_order ON envelopes_received (seq);
PRAGMA writable_schema=OFF;
COMMIT;
PRAGMA user_version = 16;
