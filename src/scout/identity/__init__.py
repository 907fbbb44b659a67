"""What a name is: handles, paths, birth branches, mentions, and the one lexer for all of them."""
