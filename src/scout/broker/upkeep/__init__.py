"""Work that no request asks for: sweeps, housekeeping, notifications, tie-breaks."""
