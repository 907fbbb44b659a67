"""Commands of the tree of agents: spawn, finish, reserve, and what git guards."""
