"""Generic building blocks that know no Scout noun: records, refusals, lifecycles, ids, times."""
