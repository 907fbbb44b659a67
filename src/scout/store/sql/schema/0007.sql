-- All open flights, newest first, for who may see everybody's: as many as are under way, however many have ended.
CREATE INDEX flights_open ON flights (id) WHERE finished_at IS NULL;
