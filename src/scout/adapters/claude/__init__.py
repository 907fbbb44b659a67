"""Claude Code: the program `claude`, held on standard input and output."""
