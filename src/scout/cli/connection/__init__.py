"""The daemon as the command line calls it, and the text it prints."""
