"""Programs that write parts of the documentation: the reference pages, the pictures, the site."""
