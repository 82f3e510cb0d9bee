-- When something was last received from each agent, by the service's clock. A Worker of an earlier version does not tell: then the
-- time of the insert is taken. What is stored already counts from the time of the agent's newest sample.

ALTER TABLE samples_v1 ADD COLUMN IF NOT EXISTS received_at DateTime64(3, 'UTC') DEFAULT now64(3);

ALTER TABLE agents_v1 ADD COLUMN IF NOT EXISTS last_received SimpleAggregateFunction(max, DateTime64(3, 'UTC')) DEFAULT last_seen;

ALTER TABLE agents_mv_v1 MODIFY QUERY
SELECT ap_id, max(ts) AS last_seen, max(received_at) AS last_received
FROM samples_v1
GROUP BY ap_id;
