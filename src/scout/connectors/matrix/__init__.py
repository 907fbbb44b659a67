"""Matrix: rooms, threads, edits and reactions over the Client-Server API."""
