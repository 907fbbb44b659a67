"""Chat platforms: each package carries texts, files and pressed buttons between Scout and one service."""
