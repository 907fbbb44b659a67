"""Any interactive program, in a pane of tmux."""
