"""What can be asked of Scout: the operation table that every surface is read off."""
