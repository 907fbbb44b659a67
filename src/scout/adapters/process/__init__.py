"""Programs as processes: started, followed, stopped, and their output files."""
