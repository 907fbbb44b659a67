"""What a credential may do: tokens, grants, permission requests and standing decisions."""
