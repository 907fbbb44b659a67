"""What several machines exchange: envelopes, the outbox, directory entries, members, invitations."""
