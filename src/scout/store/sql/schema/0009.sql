-- Agents that were born on a branch, by their work tree: a person who works there is the agent.
CREATE INDEX agents_by_work_tree ON agents (working_dir) WHERE kind = 'sub' AND birth_branch IS NOT NULL;
