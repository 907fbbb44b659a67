-- Named queries: `-- name: purpose`, then one statement. None may scan what grows; a test asks SQLite.

-- agents_of_owner: a user's agents, newest first
SELECT data FROM agents WHERE owner = :owner AND id < :before ORDER BY id DESC LIMIT :limit;

-- agents_all: every agent, newest first
SELECT data FROM agents WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- agents_named: agents of one definition, newest first
SELECT data FROM agents WHERE definition_id = :name AND id < :before ORDER BY id DESC LIMIT :limit;

-- agents_retired: retired agents of one definition, newest first
SELECT data FROM agents WHERE definition_id = :name AND lifecycle = 'retired' ORDER BY id DESC LIMIT :limit;

-- agents_of_root: the agents of a project, newest first
SELECT data FROM agents WHERE project_root = :root AND id < :before ORDER BY id DESC LIMIT :limit;

-- agents_reachable: agents with an endpoint that is idle or working
SELECT a.data FROM (SELECT DISTINCT agent_id FROM reachable WHERE agent_id < :before ORDER BY agent_id DESC LIMIT :limit) r
CROSS JOIN agents a ON a.id = r.agent_id;

-- agents_idle: agents that are awake and were not active since a moment
SELECT data FROM agents WHERE lifecycle = 'active' AND kind <> 'system'
AND path <> '/' || coalesce(owner, '') || '/direct' AND coalesce(last_active_at, 0) <= :before ORDER BY coalesce(last_active_at, 0) LIMIT :limit;

-- agents_in_front: a user's agents that are not in the background, the most recently active first
SELECT data FROM agents WHERE kind IN ('connector', 'agent', 'subuser') AND owner = :owner AND lifecycle = :lifecycle
ORDER BY last_active_at DESC LIMIT :limit;

-- agent_born: who was born on a branch of a project, live or retired
SELECT data FROM agents WHERE project_root = :root AND birth_branch = :branch AND birth_branch IS NOT NULL;

-- agent_of_work_tree: the live agent that was spawned with a work tree
SELECT data FROM agents WHERE working_dir = :folder AND kind = 'sub' AND birth_branch IS NOT NULL
AND lifecycle <> 'retired' LIMIT 1;

-- agents_below: all agents below an agent, in the order of their paths
SELECT data FROM agents WHERE path > :path || '/' AND path < :path || '0' ORDER BY path LIMIT :limit;

-- children_count: live children of an agent
SELECT count(*) FROM agents WHERE parent_id = :parent AND lifecycle <> 'retired';

-- children_of: the children of an agent, live or retired, oldest first
SELECT data FROM agents WHERE parent_id = :parent ORDER BY id LIMIT :limit;

-- root_agent: a live agent at the root of a project's tree
SELECT data FROM agents WHERE project_root = :root AND birth_branch IS NOT NULL AND parent_id IS NULL
AND lifecycle <> 'retired' LIMIT 1;

-- children_live: live children of an agent, oldest first
SELECT data FROM agents WHERE parent_id = :parent AND lifecycle <> 'retired' ORDER BY id;

-- tasks_of_owner: the agents that were made for tasks of a user, newest first
SELECT data FROM agents WHERE kind = 'task' AND owner = :owner AND id < :before ORDER BY id DESC LIMIT :limit;

-- agents_at: agents whose path begins with a text, by the beginning of their last segment
SELECT data FROM agents WHERE path >= :start AND path < :start || '~~' ORDER BY path LIMIT :limit;

-- agent_at_path: an agent by its path, live or retired
SELECT data FROM agents WHERE path = :path;

-- agents_kept_warm: agents that are to have a live session although nothing waits for them
SELECT data FROM agents WHERE wake_policy = 'keep_warm' AND lifecycle <> 'retired' ORDER BY id LIMIT :limit;

-- endpoints_kept_warm: endpoints that say so of themselves
SELECT data FROM endpoints WHERE wake_policy = 'keep_warm' AND state <> 'stopped' ORDER BY agent_id LIMIT :limit;

-- endpoints_of: an agent's endpoints
SELECT data FROM endpoints WHERE agent_id = :agent ORDER BY id;

-- endpoints_of_session: the endpoints of a session
SELECT data FROM endpoints WHERE session_id = :session ORDER BY id;

-- endpoints_silent: endpoints in use without a sign of life since a moment
SELECT data FROM endpoints WHERE held = 0 AND state IN ('idle', 'working') AND last_seen < :since
ORDER BY last_seen LIMIT :limit;

-- endpoints_held: endpoints whose process the broker holds
SELECT data FROM endpoints WHERE held = 1 AND state IN ('waking', 'idle', 'working') ORDER BY id LIMIT :limit;

-- sessions_of: an agent's sessions, newest first
SELECT data FROM sessions WHERE agent_id = :agent AND id < :before ORDER BY id DESC LIMIT :limit;

-- sessions_all: sessions, newest first
SELECT data FROM sessions WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- sessions_running: sessions that may have a process
SELECT data FROM sessions WHERE state IN ('starting', 'live') ORDER BY id LIMIT :limit;

-- members_of: who takes part in a conversation
SELECT data FROM members WHERE conversation_id = :conversation AND agent_id > :after ORDER BY agent_id LIMIT :limit;

-- members_beside: how many take part in a conversation beside one of them, up to a limit
SELECT count(*) FROM (SELECT 1 FROM members WHERE conversation_id = :conversation AND agent_id <> :agent
AND left_at IS NULL LIMIT :limit);

-- membership: an agent's place in a conversation
SELECT data FROM members WHERE conversation_id = :conversation AND agent_id = :agent;

-- memberships: the conversations of an agent, newest first
SELECT data FROM members WHERE agent_id = :agent AND left_at IS NULL AND created_at < :before
ORDER BY created_at DESC LIMIT :limit;

-- channels_of: a user's channels, newest first
SELECT data FROM conversations WHERE kind = 'channel' AND archived_at IS NULL AND owner = :owner AND created_at < :before
ORDER BY created_at DESC LIMIT :limit;

-- messages_after: a conversation's messages, oldest first
SELECT data FROM messages WHERE conversation_id = :conversation AND seq > :after ORDER BY seq LIMIT :limit;

-- messages_back: what was said in a conversation last but some
SELECT data FROM messages WHERE conversation_id = :conversation ORDER BY seq DESC LIMIT 1 OFFSET :some;

-- messages_before: a conversation's messages, newest first
SELECT data FROM messages WHERE conversation_id = :conversation AND seq < :before ORDER BY seq DESC LIMIT :limit;

-- messages_unread: how many of the messages after a place are unread for an agent, among the next few
SELECT count(*) FROM (
    SELECT id, sender FROM messages WHERE conversation_id = :conversation AND seq > :after ORDER BY seq LIMIT :limit
) r WHERE r.sender <> :agent
AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.message_id = r.id AND d.target = :agent);

-- followed_of: the talks of many that an agent takes part in, how far it has read each, and its next there
SELECT f.conversation_id, f.read_seq, (
    SELECT m.seq FROM messages m
    WHERE m.conversation_id = f.conversation_id AND m.seq > max(f.read_seq, :after) AND m.sender <> :agent
    AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.message_id = m.id AND d.target = :agent)
    ORDER BY m.seq LIMIT 1
) FROM followed f WHERE f.agent_id = :agent;

-- followed_next: the same, with the next message of anybody after a number
SELECT f.conversation_id, (
    SELECT m.seq FROM messages m WHERE m.conversation_id = f.conversation_id AND m.seq > :after
    ORDER BY m.seq LIMIT 1
) FROM followed f WHERE f.agent_id = :agent;

-- followed_back: the same, with the newest message before a number
SELECT f.conversation_id, f.read_seq, (
    SELECT m.seq FROM messages m WHERE m.conversation_id = f.conversation_id AND m.seq < :before
    ORDER BY m.seq DESC LIMIT 1
) FROM followed f WHERE f.agent_id = :agent;

-- followed_all: the talks of many that an agent takes part in
SELECT conversation_id FROM followed WHERE agent_id = :agent;

-- followed_at: how far an agent has nothing unread in one talk of many
SELECT read_seq FROM followed WHERE agent_id = :agent AND conversation_id = :conversation;

-- said_to: messages for an agent that no delivery carries to it, after a place in a conversation
SELECT m.data FROM messages m WHERE m.conversation_id = :conversation AND m.seq > :after AND m.sender <> :agent
AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.message_id = m.id AND d.target = :agent)
ORDER BY m.seq LIMIT :limit;

-- said_to_back: the same before a place, newest first
SELECT m.data FROM messages m WHERE m.conversation_id = :conversation AND m.seq < :before AND m.sender <> :agent
AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.message_id = m.id AND d.target = :agent)
ORDER BY m.seq DESC LIMIT :limit;

-- replies_to: the messages that answer one
SELECT data FROM messages WHERE in_reply_to = :message ORDER BY seq LIMIT :limit;

-- ask_of_message: the ask that a message made
SELECT data FROM asks WHERE message_id = :message;

-- asks_recent: when a sender asked since a moment
SELECT created_at FROM asks WHERE sender = :sender AND created_at > :since;

-- flights_of_ask: an ask's flights, oldest first
SELECT data FROM flights WHERE ask_id = :ask ORDER BY id;

-- flights_to: flights to an agent, newest first
SELECT data FROM flights WHERE target = :agent AND id < :before ORDER BY id DESC LIMIT :limit;

-- flights_for: flights that an agent asked for, newest first
SELECT data FROM flights WHERE requester_id = :agent AND id < :before ORDER BY id DESC LIMIT :limit;

-- flights_all: flights, newest first
SELECT data FROM flights WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- flights_open_all: open flights, newest first
SELECT data FROM flights INDEXED BY flights_open WHERE finished_at IS NULL AND id < :before
ORDER BY id DESC LIMIT :limit;

-- flights_open_to: open flights to an agent, newest first
SELECT data FROM flights WHERE target = :agent AND finished_at IS NULL AND id < :before ORDER BY id DESC LIMIT :limit;

-- flights_open_for: open flights that an agent asked for, newest first
SELECT data FROM flights WHERE requester_id = :agent AND finished_at IS NULL AND id < :before
ORDER BY id DESC LIMIT :limit;

-- flights_open_count: how many flights to an agent are open, up to a limit
SELECT count(*) FROM (SELECT 1 FROM flights WHERE target = :agent AND finished_at IS NULL LIMIT :limit);

-- flights_open_ids: which flights to an agent are open
SELECT id FROM flights WHERE target = :agent AND finished_at IS NULL;

-- flights_finished_for: what finished for an agent since a moment, newest first
SELECT data FROM flights WHERE requester_id = :agent AND finished_at > :since ORDER BY finished_at DESC LIMIT :limit;

-- flights_finished_between: what finished for an agent between two moments, newest first
SELECT data FROM flights WHERE requester_id = :agent AND finished_at > :since AND finished_at <= :until
ORDER BY finished_at DESC LIMIT :limit;

-- flights_finished_count: how many finished for an agent since a moment, up to a limit
SELECT count(*) FROM (SELECT 1 FROM flights WHERE requester_id = :agent AND finished_at > :since LIMIT :limit);

-- flights_due: open flights whose next check has come
SELECT data FROM flights WHERE next_check_at <= :now ORDER BY next_check_at LIMIT :limit;

-- inbox: what waits for an agent and is not under way by a program, oldest first
SELECT data FROM deliveries WHERE target = :agent AND state IN ('pending', 'leased') AND id > :after
ORDER BY id LIMIT :limit;

-- inbox_places: the conversations of what waits for an agent, one row for each item, up to a limit
SELECT conversation_id FROM deliveries WHERE target = :agent AND state IN ('pending', 'leased') LIMIT :limit;

-- deliveries_to: deliveries to an agent, newest first: those that wait and those that are settled
SELECT data FROM (
    SELECT id, data FROM deliveries WHERE target = :agent AND state IN ('pending', 'leased') AND id < :before
    UNION ALL
    SELECT id, data FROM deliveries
    WHERE target = :agent AND state IN ('acked', 'dead_lettered', 'cancelled') AND id < :before
    ORDER BY id DESC LIMIT :limit
);

-- deliveries_due: deliveries for which a program may be started now
SELECT data FROM deliveries WHERE state = 'pending' AND wake = 1 AND next_attempt_at <= :now
ORDER BY next_attempt_at LIMIT :limit;

-- deliveries_next: when the next delivery for a program is due
SELECT min(next_attempt_at) FROM deliveries WHERE state = 'pending' AND wake = 1;

-- deliveries_overdue: leases that have run out
SELECT data FROM deliveries WHERE state = 'leased' AND leased_until <= :now ORDER BY leased_until LIMIT :limit;

-- deliveries_expiring: what nobody took in time
SELECT data FROM deliveries WHERE state = 'pending' AND expires_at <= :now ORDER BY expires_at LIMIT :limit;

-- deliveries_delegating: plain messages that were to be acted on, from one moment to another
SELECT data FROM deliveries WHERE delegates = 1 AND created_at > :after AND created_at <= :before
ORDER BY created_at LIMIT :limit;

-- deliveries_leased: every lease, the soonest to end first
SELECT data FROM deliveries WHERE state = 'leased' AND leased_until > :after ORDER BY leased_until LIMIT :limit;

-- deliveries_of_flight: the deliveries of a flight
SELECT data FROM deliveries WHERE flight_id = :flight ORDER BY id;

-- deliveries_of_message: the deliveries of a message
SELECT data FROM deliveries WHERE message_id = :message ORDER BY id LIMIT :limit;

-- wakes_in: what woke somebody in a conversation since a moment, newest first
SELECT data FROM deliveries WHERE conversation_id = :conversation AND wake = 1 AND created_at > :since
ORDER BY created_at DESC LIMIT :limit;

-- wakes_recent: when agents last caused somebody to be woken in a conversation, newest first
SELECT d.created_at FROM deliveries AS d
WHERE d.conversation_id = :conversation AND d.wake = 1 AND d.created_at > :since
AND NOT EXISTS (
    SELECT 1 FROM agents AS a WHERE a.id = CAST(d.data AS TEXT) ->> '$.sender' AND a.path = '/' || a.owner || '/direct'
)
ORDER BY d.created_at DESC LIMIT :limit;

-- questions_all: questions, newest first
SELECT data FROM questions WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- question_of_message: the question that a message asked
SELECT data FROM questions WHERE message_id = :message;

-- questions_owed: questions whose next move is an agent's, newest first
SELECT data FROM questions WHERE next_move_owner_id = :agent AND id < :before ORDER BY id DESC LIMIT :limit;

-- questions_asked: questions that an agent asked, newest first
SELECT data FROM questions WHERE asker_id = :agent AND id < :before ORDER BY id DESC LIMIT :limit;

-- questions_asked_open: those of them that are not settled
SELECT data FROM questions WHERE asker_id = :agent AND next_move_owner_id IS NOT NULL AND id < :before
ORDER BY id DESC LIMIT :limit;

-- questions_of: questions that an agent asked or is to answer, newest first
SELECT q.data FROM (
    SELECT id FROM questions WHERE asker_id = :agent AND id < :before
    UNION
    SELECT id FROM questions WHERE responder_id = :agent AND id < :before
    ORDER BY id DESC LIMIT :limit
) r CROSS JOIN questions q ON q.id = r.id;

-- work_all: work items, newest first
SELECT data FROM work_items WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- work_all_open: work items that are not settled, newest first
SELECT data FROM work_items WHERE settled_at IS NULL AND id < :before ORDER BY id DESC LIMIT :limit;

-- work_owned: an owner's work items, newest first
SELECT data FROM work_items WHERE owner_id = :agent AND id < :before ORDER BY id DESC LIMIT :limit;

-- work_owned_open: those of them that are not settled
SELECT data FROM work_items WHERE owner_id = :agent AND settled_at IS NULL AND id < :before
ORDER BY id DESC LIMIT :limit;

-- work_owed: work items whose next move is an agent's, newest first
SELECT data FROM work_items WHERE next_move_owner_id = :agent AND settled_at IS NULL AND id < :before
ORDER BY id DESC LIMIT :limit;

-- work_of: work items that an agent owns, requested or owes a move, newest first
SELECT w.data FROM (
    SELECT id FROM work_items WHERE owner_id = :agent AND id < :before
    UNION
    SELECT id FROM work_items WHERE requester_id = :agent AND id < :before
    UNION
    SELECT id FROM work_items WHERE next_move_owner_id = :agent AND settled_at IS NULL AND id < :before
    ORDER BY id DESC LIMIT :limit
) r CROSS JOIN work_items w ON w.id = r.id;

-- work_of_open: those of them that are not settled
SELECT w.data FROM (
    SELECT id FROM work_items WHERE owner_id = :agent AND settled_at IS NULL AND id < :before
    UNION
    SELECT id FROM work_items WHERE requester_id = :agent AND settled_at IS NULL AND id < :before
    UNION
    SELECT id FROM work_items WHERE next_move_owner_id = :agent AND settled_at IS NULL AND id < :before
    ORDER BY id DESC LIMIT :limit
) r CROSS JOIN work_items w ON w.id = r.id;

-- work_awaiting: work items that wait for another
SELECT data FROM work_items WHERE awaits = :item AND id > :after ORDER BY id LIMIT :limit;

-- work_relating: work items that stand in a relation to one
SELECT w.data FROM work_relations r CROSS JOIN work_items w ON w.id = r.from_id
WHERE r.work_item_id = :item ORDER BY r.from_id LIMIT :limit;

-- attention_open: what needs a user, newest first
SELECT data FROM attention WHERE user = :user AND state IN ('open', 'notified') AND id < :before
ORDER BY id DESC LIMIT :limit;

-- attention_in_turn: the same by risk, then in turn by agent, oldest first
SELECT data FROM attention WHERE user = :user AND state IN ('open', 'notified')
AND (urgency, rank, id) > (:urgency, :rank, :after)
ORDER BY urgency, rank, id LIMIT :limit;

-- attention_counts: how much needs a user, by agent and risk
SELECT agent_id, urgency, count(*) FROM attention WHERE user = :user AND state IN ('open', 'notified')
GROUP BY agent_id, urgency;

-- attention_open_count: how many open items an agent has at most
SELECT count(*) FROM (
    SELECT 1 FROM attention WHERE agent_id = :agent AND state IN ('open', 'notified') LIMIT :limit
) r;

-- attention_rank: the next place in the row of an agent's open items of one risk
SELECT coalesce(max(rank), 0) + 1 FROM attention
WHERE user = :user AND agent_id = :agent AND urgency = :urgency AND state IN ('open', 'notified');

-- attention_raised_before: what an agent raised last but some
SELECT data FROM attention WHERE agent_id = :agent ORDER BY id DESC LIMIT 1 OFFSET :some;

-- allowances_about: the standing decisions of a user about one command or tool, or those with a pattern
SELECT data FROM allowances WHERE user = :user AND kind = :what AND subject = :subject AND state = 'active'
ORDER BY id LIMIT :limit;

-- attention_let_through: what a standing decision answered, newest first
SELECT data FROM attention WHERE allowance_id = :allowance ORDER BY id DESC LIMIT :limit;

-- allowances_open: the standing decisions of a user that are not revoked, newest first
SELECT data FROM allowances WHERE user = :user AND state = 'active' AND id < :before ORDER BY id DESC LIMIT :limit;

-- allowances_all: all of them, newest first
SELECT data FROM allowances WHERE user = :user AND id < :before ORDER BY id DESC LIMIT :limit;

-- allowances_of_session: the standing decisions that end with a session
SELECT data FROM allowances WHERE session_id = :session AND state = 'active' LIMIT :limit;

-- attention_all: what needed a user, newest first
SELECT data FROM attention WHERE user = :user AND id < :before ORDER BY id DESC LIMIT :limit;

-- attention_about: the open items about one thing, whoever it needs
SELECT data FROM attention WHERE dedupe = :dedupe AND state IN ('open', 'notified');

-- attention_by: what an agent raised, newest first
SELECT data FROM attention WHERE agent_id = :agent AND id < :before ORDER BY id DESC LIMIT :limit;

-- leases_of: what an agent took from its inbox and has not acknowledged
SELECT data FROM deliveries WHERE state = 'leased' AND leased_until > 0 AND target = :agent LIMIT :limit;

-- attention_by_open: those of them that are not decided
SELECT data FROM attention WHERE agent_id = :agent AND state IN ('open', 'notified') AND id < :before
ORDER BY id DESC LIMIT :limit;

-- attention_untold: what needs a user who was not told of it yet, newest first
SELECT data FROM attention WHERE user = :user AND state = 'open' ORDER BY id DESC LIMIT :limit;

-- usage_since: what was spent from a day on, by day, agent, ledger, harness and model
SELECT * FROM usage_days WHERE day >= :day ORDER BY day, agent_id, category, harness, model;

-- usage_today: the tokens that harnesses spent on a day
SELECT coalesce(sum(total_tokens), 0) FROM usage_days WHERE day = :day AND category = 'harness_execution';

-- usage_today_of: the tokens that an agent's harnesses spent on a day
SELECT coalesce(sum(total_tokens), 0) FROM usage_days
WHERE day = :day AND agent_id = :agent AND category = 'harness_execution';

-- alias_named: a user's alias
SELECT data FROM aliases WHERE owner = :owner AND name = :name AND state <> 'removed';

-- aliases_of: a user's aliases, newest first
SELECT data FROM aliases WHERE owner = :owner AND state <> 'removed' AND id < :before ORDER BY id DESC LIMIT :limit;

-- aliases_for: a user's aliases for an agent
SELECT data FROM aliases WHERE agent_id = :agent AND owner = :owner AND state <> 'removed' ORDER BY name LIMIT :limit;

-- aliases_over: names that were made for a session which is no more
SELECT a.data FROM aliases a CROSS JOIN sessions s ON s.id = a.session_id
WHERE a.until_session_ends = 1 AND a.state <> 'removed' AND a.session_id > '' AND s.state IN ('ended', 'lost') LIMIT :limit;

-- alias_of_session: the name that sets a live session apart
SELECT data FROM aliases WHERE session_id = :session AND until_session_ends = 1 AND state <> 'removed';

-- cards_by: the cards that somebody made, newest first
SELECT data FROM cards WHERE created_by = :maker AND id < :before ORDER BY id DESC LIMIT :limit;

-- cards_expiring: cards that have expired
SELECT data FROM cards WHERE state = 'active' AND expires_at <= :now ORDER BY expires_at LIMIT :limit;

-- tokens_expiring: credentials that have expired
SELECT data FROM tokens WHERE state = 'active' AND expires_at <= :now ORDER BY expires_at LIMIT :limit;

-- grants_expiring: grants that have expired
SELECT data FROM grants WHERE state = 'active' AND expires_at <= :now ORDER BY expires_at LIMIT :limit;

-- reservations_all: all reservations, newest first
SELECT data FROM reservations WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- reservations_active: the active ones, newest first
SELECT data FROM reservations WHERE state = 'active' AND id < :before ORDER BY id DESC LIMIT :limit;

-- reservations_in: the active ones of a work tree, repository or folder, oldest first
SELECT data FROM reservations WHERE root = :root AND state = 'active' ORDER BY id LIMIT :limit;

-- reservations_of_agent: the active ones of an agent, newest first
SELECT data FROM reservations WHERE agent_id = :agent AND state = 'active' ORDER BY id DESC LIMIT :limit;

-- reservations_of_session: the active ones that end with a session
SELECT data FROM reservations WHERE session_id = :session AND state = 'active' LIMIT :limit;

-- reservations_of_flight: the active ones that end with a flight
SELECT data FROM reservations WHERE flight_id = :flight AND state = 'active' LIMIT :limit;

-- reservations_expiring: reservations that have expired
SELECT data FROM reservations WHERE state = 'active' AND expires_at <= :now ORDER BY expires_at LIMIT :limit;

-- flights_finished_since: flights that ended at or after a time, newest first
SELECT data FROM flights WHERE finished_at >= :since ORDER BY finished_at DESC LIMIT :limit;

-- attention_expiring: what needed a user until now
SELECT data FROM attention WHERE state IN ('open', 'notified') AND expires_at <= :now
ORDER BY expires_at LIMIT :limit;

-- sweeps_first: what nobody was reminded of yet, although its move is owed since a moment
SELECT id FROM sweeps WHERE period = :period AND nudges = 0 AND since <= :before ORDER BY since LIMIT :limit;

-- sweeps_next: what somebody else is to be reminded of by now
SELECT id FROM sweeps WHERE next_at <= :now ORDER BY next_at LIMIT :limit;

-- sweep_of: the reminders of a record so far
SELECT nudges, nudged_at, next_at FROM sweeps WHERE id = :id;

-- token_hashed: a credential by the hash of its secret
SELECT data FROM tokens WHERE hashed = :hashed;

-- tokens_all: credentials, newest first
SELECT data FROM tokens WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- tokens_of_agent: an agent's credentials that are in force
SELECT data FROM tokens WHERE agent_id = :agent AND state = 'active' ORDER BY agent_id LIMIT :limit;

-- tokens_of_session: a session's credentials that are in force
SELECT data FROM tokens WHERE session_id = :session AND state = 'active' ORDER BY session_id LIMIT :limit;

-- grants_of_agent: what an agent was granted
SELECT data FROM grants WHERE agent_id = :agent AND state = 'active';

-- grants_of_user: what every agent of a user was granted
SELECT data FROM grants WHERE user = :user AND state = 'active';

-- grants_all: grants, newest first
SELECT data FROM grants WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- operator: the one user who is the operator
SELECT data FROM users WHERE operator = 1;

-- user_named: a user by name, active or retired
SELECT data FROM users WHERE name = :name;

-- owners_unknown: the owners of agents that are no users yet; each is found by one step in the index
SELECT owner FROM (
    WITH RECURSIVE r (owner) AS (
        SELECT min(owner) FROM agents
        UNION ALL
        SELECT (SELECT min(a.owner) FROM agents a WHERE a.owner > r.owner) FROM r WHERE r.owner IS NOT NULL
    )
    SELECT r.owner FROM r WHERE r.owner IS NOT NULL AND NOT EXISTS (SELECT 1 FROM users u WHERE u.name = r.owner)
);

-- users_all: users, newest first
SELECT data FROM users WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- users_owned: the sub-users of a user, newest first
SELECT data FROM users WHERE owner = :owner AND owner IS NOT NULL AND id < :before ORDER BY id DESC LIMIT :limit;

-- key_linked: the key of a chat account that is linked now
SELECT data FROM connector_keys WHERE connector = :connector AND external_id = :account AND state = 'active';

-- keys_of_user: the chat accounts of a user, linked or freed, newest first
SELECT data FROM connector_keys WHERE user = :user AND id < :before ORDER BY id DESC LIMIT :limit;

-- keys_all: chat accounts, newest first
SELECT data FROM connector_keys WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- link_code_open: the code of a user for a connector that was not used yet
SELECT data FROM link_codes WHERE user = :user AND connector = :connector AND state = 'open';

-- link_codes_of_user: all codes of a user that were not used yet
SELECT data FROM link_codes WHERE user = :user AND state = 'open' LIMIT :limit;

-- link_code_hashed: a code by its hash
SELECT data FROM link_codes WHERE hashed = :hashed;

-- link_attempts: wrong codes of a connector since a moment, and those of one chat
SELECT count(*), count(CASE WHEN chat = :chat THEN 1 END) FROM link_attempts
WHERE connector = :connector AND time > :since;

-- binding_at: the active binding of a chat, or of a thread in it
SELECT data FROM bindings WHERE surface = :surface AND name = :name AND external_id = :chat
AND coalesce(topic_id, '') = :topic AND state = 'active';

-- bindings_all: bindings, newest first
SELECT data FROM bindings WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- bindings_of_user: the bindings of a user, newest first
SELECT data FROM bindings WHERE user = :user AND id < :before ORDER BY id DESC LIMIT :limit;

-- bindings_of_chat: the active bindings of a chat and of the threads in it
SELECT data FROM bindings WHERE surface = :surface AND name = :name AND external_id = :chat
AND state = 'active' LIMIT :limit;

-- bindings_of_conversation: the chats that are bound to a conversation
SELECT data FROM bindings WHERE conversation_id = :conversation AND state = 'active' LIMIT :limit;

-- bindings_of_agent: the chats that are bound to an agent
SELECT data FROM bindings WHERE agent_id = :agent AND state = 'active' LIMIT :limit;

-- local_node: this machine
SELECT data FROM nodes WHERE local = 1;

-- node_named: the machine with a name
SELECT data FROM nodes WHERE name = :name;

-- invitations_open: invitations to the mesh that were not used yet, the first to expire first
SELECT data FROM invitations WHERE state = 'open' ORDER BY expires_at LIMIT :limit;

-- nodes_all: machines, newest first
SELECT data FROM nodes WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- log_row: the row of the log with an event; it is there unless it begins later
SELECT first, data FROM events WHERE seq >= :seq ORDER BY seq LIMIT 1;

-- log_rows: the rows of the log after an event, with the one that it is in
SELECT seq, first, data FROM events WHERE seq > :after ORDER BY seq LIMIT :limit;

-- log_row_number: the number of the row with an event
SELECT min(seq) FROM events WHERE seq >= :seq;

-- archive_of_event: the archive with an event, also one that was purged
SELECT r.data FROM (
    SELECT data, first FROM (
        SELECT data, first, last FROM archives WHERE kind = 'events' AND state = 'kept' AND last >= :seq ORDER BY last LIMIT 1
    ) UNION ALL SELECT data, first FROM (
        SELECT data, first, last FROM archives WHERE kind = 'events' AND state = 'purged' AND last >= :seq ORDER BY last LIMIT 1
    )
) r WHERE r.first <= :seq;

-- archive_after: the first archive with events after another one
SELECT data FROM archives WHERE kind = 'events' AND state = 'kept' AND last > :seq ORDER BY last LIMIT 1;

-- archives_kept: the archives of a kind whose files are kept, oldest first
SELECT data FROM archives WHERE kind = :kind AND state = 'kept' AND last > :after ORDER BY last LIMIT :limit;

-- archives_all: archives, newest first
SELECT data FROM archives WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- archive_newest: the newest archive of a kind in a state
SELECT data FROM archives WHERE kind = :kind AND state = :state ORDER BY last DESC LIMIT 1;

-- touched_mark: the last event that the index of touched records knows
SELECT max(max(seq, touched)) FROM history_mark;

-- touched_after: the rows that touch a key after an event, as far as they are indexed, oldest first; archived without data
SELECT r.seq, e.first, e.data FROM touched r LEFT JOIN events e ON e.seq = r.seq
WHERE r.key = :key AND r.seq > :after AND r.seq <= :mark ORDER BY r.seq;

-- untouched_after: the rows that hold an id after an event that is not indexed yet, oldest first
SELECT seq, first, data FROM events WHERE seq > :after AND instr(data, :ident) ORDER BY seq;

-- touched_before: the indexed rows that touch a key up to a row, newest first, if they hold some bytes
SELECT r.seq, e.first, e.data FROM (
    SELECT seq FROM touched WHERE key = :key AND seq <= :last ORDER BY seq DESC LIMIT :limit
) r LEFT JOIN events e ON e.seq = r.seq WHERE e.data IS NULL OR :holding = x'' OR instr(e.data, :holding);

-- untouched_before: the rows that hold an id and are not indexed yet, up to a row, newest first
SELECT seq, first, data FROM (
    SELECT seq, first, data FROM events WHERE seq > :mark AND seq <= :last AND instr(data, :ident)
    ORDER BY seq DESC LIMIT :limit
) r WHERE :holding = x'' OR instr(r.data, :holding);

-- usage_of_agent: what was reported of an agent from a moment on
SELECT data FROM usage WHERE agent_id = :agent AND created_at >= :since ORDER BY created_at LIMIT :limit;

-- file_uploaded: whether an agent stored a file itself
SELECT count(*) FROM file_uploads WHERE sha256 = :hashed AND agent_id = :agent;

-- file_messages: the messages that carry a file, newest first
SELECT m.data FROM (SELECT message_id FROM file_messages WHERE sha256 = :hashed AND message_id < :before ORDER BY message_id DESC LIMIT :limit) r
CROSS JOIN messages m ON m.id = r.message_id;

-- schedules_due: schedules that the runner has to look at by a moment, the earliest first
SELECT data FROM schedules WHERE next_at <= :now ORDER BY next_at LIMIT :limit;

-- schedules_next: when the runner has to look at a schedule again
SELECT min(next_at) FROM schedules WHERE next_at IS NOT NULL;

-- schedules_ahead: schedules that were changed after a moment: while the clock was ahead of it
SELECT data FROM schedules WHERE state <> 'ended' AND updated_at > :now ORDER BY updated_at LIMIT :limit;

-- schedules_of_owner: a user's schedules, newest first
SELECT data FROM schedules WHERE owner = :owner AND id < :before ORDER BY id DESC LIMIT :limit;

-- schedules_all: every schedule, newest first
SELECT data FROM schedules WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- schedule_of_agent: the schedule of a cron agent
SELECT data FROM schedules WHERE agent_id = :agent ORDER BY id DESC LIMIT 1;

-- chat_posts_due: posts of a connector that may be sent now, in the order in which they are due
SELECT data FROM chat_posts WHERE connector = :connector AND state = 'queued' AND next_attempt_at <= :now
ORDER BY next_attempt_at LIMIT :limit;

-- chat_posts_next: when the next post of a connector is due
SELECT min(next_attempt_at) FROM chat_posts WHERE connector = :connector AND state = 'queued';

-- chat_posts_waiting: how many posts of a connector wait, up to a limit
SELECT count(*) FROM (SELECT 1 FROM chat_posts WHERE connector = :connector AND state = 'queued' LIMIT :limit);

-- chat_posts_sending: posts of a connector whose sending has begun
SELECT data FROM chat_posts WHERE connector = :connector AND state = 'sending' LIMIT :limit;

-- chat_posts_about: where an attention item is shown
SELECT data FROM chat_posts WHERE attention_id = :attention AND attention_id IS NOT NULL LIMIT :limit;

-- chat_posts_of_message: where a message is shown
SELECT data FROM chat_posts WHERE message_id = :message AND message_id IS NOT NULL LIMIT :limit;

-- chat_posts_of_user: what was shown to a user, newest first
SELECT data FROM chat_posts WHERE user = :user AND id < :before ORDER BY id DESC LIMIT :limit;

-- chat_posts_all: what was shown in chats, newest first
SELECT data FROM chat_posts WHERE id < :before ORDER BY id DESC LIMIT :limit;

-- chat_post_shown: the post that a message on a platform is part of
SELECT p.data FROM chat_parts r CROSS JOIN chat_posts p ON p.id = r.post_id
WHERE r.connector = :connector AND r.chat_id = :chat AND r.external_id = :external;

-- chat_received: whether something that came from a platform was taken
SELECT EXISTS (SELECT 1 FROM chat_received WHERE connector = :connector AND inbound_id = :inbound);

-- chat_origin: where a message came from
SELECT r.seq FROM chat_received r WHERE r.message_id = :message LIMIT 1;

-- chat_message: what a message on a platform was taken as
SELECT r.seq FROM chat_received r
WHERE r.connector = :connector AND r.chat_id = :chat AND r.external_id = :external LIMIT 1;

-- chat_last_ask: the latest ask from a chat and a thread in it
SELECT r.seq FROM chat_received r
WHERE r.connector = :connector AND r.chat_id = :chat AND r.thread_id = :thread AND r.asks = 1
ORDER BY r.seq DESC LIMIT 1;

-- chat_stranger: whether somebody unknown was told how to be linked, on a day
SELECT EXISTS (SELECT 1 FROM chat_strangers WHERE connector = :connector AND hashed = :hashed AND day = :day);

-- chats_exist: whether any chat is linked to a user or bound to a conversation
SELECT EXISTS (SELECT 1 FROM connector_keys WHERE connector > '' AND state = 'active')
OR EXISTS (SELECT 1 FROM bindings WHERE surface = 'connector' AND state = 'active');

-- reservations_exist: whether anything is reserved now
SELECT EXISTS (SELECT 1 FROM reservations WHERE id > '' AND state = 'active');

-- children_exist: whether any agent has a parent
SELECT EXISTS (SELECT 1 FROM agents WHERE parent_id > '');

-- items_exist: whether any item is open
SELECT EXISTS (SELECT 1 FROM attention WHERE user > '' AND state IN ('open', 'notified'));

-- chat_posts_open: posts of a connector that are not shown yet
SELECT id FROM chat_posts WHERE connector = :connector AND state = 'queued'
UNION ALL SELECT id FROM chat_posts WHERE connector = :connector AND state = 'sending';

-- history_record: the number under which the history knows a record
SELECT record FROM history_records WHERE id = :id;

-- history_version: the last event up to a moment that changed a record
SELECT max(seq) FROM history_versions WHERE record = :record AND seq <= :seq;

-- history_newest: records of a kind that existed at a moment, newest first, each with its state
SELECT h.record, h.id, (
    SELECT v.state FROM history_versions v WHERE v.record = h.record AND v.seq <= :seq ORDER BY v.seq DESC LIMIT 1
) FROM history_records h WHERE h.kind = :kind AND h.record < :before ORDER BY h.record DESC LIMIT :limit;

-- history_newest_of: the same for the records that concern an agent or a user
SELECT h.record, h.id, (
    SELECT v.state FROM history_versions v WHERE v.record = h.record AND v.seq <= :seq ORDER BY v.seq DESC LIMIT 1
) FROM history_parties p CROSS JOIN history_records h ON h.record = p.record
WHERE p.party = :party AND p.kind = :kind AND p.record < :before ORDER BY p.record DESC LIMIT :limit;

-- history_in: records of a kind that were in one of some states at a moment: those that are still in it, and spans
SELECT h.record, h.id, h.state FROM json_each(:states) r
CROSS JOIN history_records h ON h.kind = :kind AND h.state = r.value AND h.entered <= :seq
UNION ALL
SELECT h.record, h.id, s.state FROM json_each(:states) r CROSS JOIN json_each(:below) rf
CROSS JOIN history_spans s ON s.kind = :kind AND s.state = r.value AND s.fork = rf.value AND s.last >= :seq
CROSS JOIN history_records h ON h.record = s.record
UNION ALL
SELECT h.record, h.id, s.state FROM json_each(:states) r CROSS JOIN json_each(:above) rf
CROSS JOIN history_spans s INDEXED BY history_spans_from
ON s.kind = :kind AND s.state = r.value AND s.fork = rf.value AND s.entered <= :seq
CROSS JOIN history_records h ON h.record = s.record;

-- history_concerns: whether a record concerns an agent or a user, or once did
SELECT EXISTS (SELECT 1 FROM history_parties WHERE party = :party AND kind = :kind AND record = :record);

-- outbox_due: envelopes that wait to be published to a node, in order
SELECT data FROM outbox WHERE node_id = :node AND state = 'queued' AND id > :after ORDER BY id LIMIT :limit;

-- outbox_before: the last open envelope to a node in the same conversation before each of some
SELECT r.key, (
    SELECT max(o.id) FROM outbox o WHERE o.node_id = :node AND o.conversation_id = r.value AND o.id < r.key
        AND o.state IN ('queued', 'forwarded')
) FROM json_each(:rows) r;

-- outbox_unanswered: published envelopes to a node whose receipt is late, or whose time is further away than any pause
SELECT data FROM outbox WHERE node_id = :node AND state = 'forwarded' AND next_attempt_at <= :now
UNION ALL SELECT data FROM outbox WHERE node_id = :node AND state = 'forwarded' AND next_attempt_at > :far LIMIT :limit;

-- outbox_next: when the next receipt from a node is late
SELECT min(next_attempt_at) FROM outbox WHERE node_id = :node AND state = 'forwarded';

-- outbox_last: when the last receipt from a node is late
SELECT max(next_attempt_at) FROM outbox WHERE node_id = :node AND state = 'forwarded';

-- outbox_expired: open envelopes that have expired
SELECT data FROM outbox WHERE state IN ('queued', 'forwarded') AND expires_at <= :now ORDER BY expires_at LIMIT :limit;

-- outbox_open: envelopes that no node has confirmed
SELECT data FROM outbox WHERE state = 'queued' AND node_id > ''
UNION ALL SELECT data FROM outbox WHERE state = 'forwarded' AND node_id > '' LIMIT :limit;

-- outbox_open_to: envelopes that a node has not confirmed
SELECT data FROM outbox WHERE node_id = :node AND state = 'queued'
UNION ALL SELECT data FROM outbox WHERE node_id = :node AND state = 'forwarded' LIMIT :limit;

-- agents_leaving: the agents that are on their way to another node
SELECT subject FROM outbox WHERE state = 'queued' AND node_id > '' AND kind = 'move'
UNION ALL SELECT subject FROM outbox WHERE state = 'forwarded' AND node_id > '' AND kind = 'move';

-- outbox_nodes: the nodes that have not taken everything
SELECT n.id FROM nodes n WHERE n.id > :after AND (
    EXISTS (SELECT 1 FROM outbox o WHERE o.node_id = n.id AND o.state = 'queued')
    OR EXISTS (SELECT 1 FROM outbox o WHERE o.node_id = n.id AND o.state = 'forwarded')
) ORDER BY n.id;

-- outbox_about: the envelopes about a record, oldest first
SELECT data FROM outbox WHERE subject = :subject ORDER BY id LIMIT :limit;

-- outbox_of_delivery: the envelopes of a delivery to another node, newest first
SELECT data FROM outbox WHERE delivery_id = :delivery AND delivery_id IS NOT NULL ORDER BY id DESC LIMIT :limit;

-- outbox_count: how many envelopes to a node are open, up to a limit
SELECT count(*) FROM (
    SELECT 1 FROM outbox WHERE node_id = :node AND state = 'queued'
    UNION ALL SELECT 1 FROM outbox WHERE node_id = :node AND state = 'forwarded' LIMIT :limit
);

-- outbox_oldest: the oldest open envelope to a node; of the published ones, up to a limit are compared
SELECT data FROM outbox WHERE id = (SELECT min(id) FROM (
    SELECT id FROM (SELECT id FROM outbox WHERE node_id = :node AND state = 'queued' ORDER BY id LIMIT 1)
    UNION ALL SELECT id FROM (SELECT id FROM outbox WHERE node_id = :node AND state = 'forwarded' LIMIT :limit)
));

-- envelope_received: the number of the event of an envelope that came from another node
SELECT seq FROM envelopes_received WHERE envelope_id = :envelope;

-- envelopes_taken: which of these envelopes from other nodes were taken
SELECT e.envelope_id FROM json_each(:ids) r CROSS JOIN envelopes_received e ON e.envelope_id = r.value;

-- envelopes_received_about: the numbers of the events of the envelopes from other nodes about a record
SELECT seq FROM envelopes_received WHERE subject = :subject AND subject IS NOT NULL ORDER BY seq LIMIT :limit;

-- envelopes_oldest: the numbers of the events of the oldest envelopes that came from other nodes
SELECT seq FROM envelopes_received WHERE seq > 0 ORDER BY seq LIMIT :limit;
