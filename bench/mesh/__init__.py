"""Several machines: two nodes that talk, a partition, and directories of other nodes' agents of any size."""
