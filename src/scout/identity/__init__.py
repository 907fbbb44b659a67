"""Names of agents: handles, paths, birth branches, mentions, and the lexer for all of them."""
