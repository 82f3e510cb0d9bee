-- The same rollup in another order: one metric of many agents over some minutes is one range of rows. In minutes_v1 it is one range for
-- each agent. A number stands for the name of the agent: grouping by it takes half the time. No TTL is set here, as in 0004.

CREATE TABLE IF NOT EXISTS network_minutes_local_v1 ON CLUSTER <cluster> (
  agent UInt64 CODEC(ZSTD(1)),
  metric LowCardinality(String),
  minute DateTime('UTC') CODEC(Delta, ZSTD(1)),
  n SimpleAggregateFunction(sum, UInt64),
  total SimpleAggregateFunction(sum, Float64)
) ENGINE = ReplicatedAggregatingMergeTree('/clickhouse/tables/{shard}/{database}/network_minutes_local_v1', '{replica}')
PARTITION BY toYYYYMM(minute)
ORDER BY (metric, minute, agent)
SETTINGS ttl_only_drop_parts = 1;

-- Reads the other rollup, not the samples: this costs half as much. A batch that is sent again is deduplicated in each table separately,
-- because the inserts set deduplicate_blocks_in_dependent_materialized_views.
CREATE MATERIALIZED VIEW IF NOT EXISTS network_minutes_mv_v1 ON CLUSTER <cluster> TO network_minutes_local_v1 AS
SELECT sipHash64(ap_id) AS agent, metric, toDateTime(minute, 'UTC') AS minute, n, total
FROM minutes_local_v1;

-- The view keeps the rows of an agent on its shard; the copy below does not. A random key says so to the optimiser.
CREATE TABLE IF NOT EXISTS network_minutes_v1 ON CLUSTER <cluster> AS network_minutes_local_v1
ENGINE = Distributed(<cluster>, currentDatabase(), network_minutes_local_v1, rand());

-- Inserts that began before the view existed do not reach it.
-- for each: SELECT 1 AS row FROM minutes_v1 LIMIT 1
SELECT sleep(3) FORMAT Null;

-- Copies day by day what is not there yet. A second run copies nothing twice: it adds the difference only. Rows of minutes_v1 are read
-- in their order, so that a day of a large network needs little memory.
-- for each: SELECT toString(day) AS day FROM (SELECT toDate(minute) AS day, sum(n) AS stored FROM minutes_v1 GROUP BY day) AS minutes LEFT JOIN (SELECT toDate(minute) AS day, sum(n) AS copied FROM network_minutes_v1 GROUP BY day) AS network USING (day) WHERE stored > copied ORDER BY day
INSERT INTO network_minutes_v1 (agent, metric, minute, n, total)
SETTINGS distributed_foreground_insert = 1
SELECT agent, metric, at, stored - copied, stored_total - copied_total
FROM (
  SELECT sipHash64(ap_id) AS agent, metric, toDateTime(minute, 'UTC') AS at, sum(n) AS stored, sum(total) AS stored_total
  FROM minutes_v1 WHERE toDate(minute) = {day:Date} GROUP BY ap_id, metric, minute
) AS minutes
LEFT JOIN (
  SELECT agent, metric, minute AS at, sum(n) AS copied, sum(total) AS copied_total
  FROM network_minutes_v1 WHERE toDate(minute) = {day:Date} GROUP BY agent, metric, minute
) AS network USING (agent, metric, at)
WHERE stored > copied
SETTINGS optimize_aggregation_in_order = 1, insert_deduplicate = 0, max_partitions_per_insert_block = 0;
