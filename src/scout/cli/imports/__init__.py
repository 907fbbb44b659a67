"""Reading the files of other systems, and sending what they hold to the daemon."""
