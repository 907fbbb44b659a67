-- Envelopes from other nodes are forgotten oldest first, when no node can repeat them any more.
CREATE INDEX envelopes_received_in_order ON envelopes_received (seq);
