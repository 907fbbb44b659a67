"""Git, as Scout runs it: repositories, processes, isolation, locks."""
