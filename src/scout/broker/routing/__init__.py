"""Who is meant, through which endpoint they are reached, and who is woken."""
