-- A work item that waits until a time is resumed then: its row names that time instead of a reminder.
UPDATE sweeps SET period = 'wait_ends', since = waits.until
FROM (
    SELECT id, json_extract(CAST(data AS TEXT), '$.waitingOn.until') AS until FROM work_items WHERE state = 'waiting'
) AS waits
WHERE waits.id = sweeps.id AND waits.until IS NOT NULL;
