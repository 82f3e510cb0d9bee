-- The same tables on a cluster: on each node the part of the agents that live on its shard, replicated, and over them one
-- distributed table with the name that the service knows. An agent is on one shard with all that belongs to it, so every question
-- about one agent is answered by one shard. `<cluster>` is the setting CLICKHOUSE_CLUSTER; {shard} and {replica} are macros of the
-- servers.

CREATE TABLE IF NOT EXISTS samples_local_v1 ON CLUSTER <cluster> (
  ap_id String,
  ts DateTime64(3, 'UTC'),
  metrics Map(String, Float64),
  texts Map(String, String)
) ENGINE = Null;

-- A value is named by its agent, metric and time; sent twice, it is one value.
CREATE TABLE IF NOT EXISTS points_local_v1 ON CLUSTER <cluster> (
  ap_id LowCardinality(String),
  metric LowCardinality(String),
  ts DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  value Float64 CODEC(ZSTD(1))
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/{database}/points_local_v1', '{replica}')
PARTITION BY toDate(ts)
ORDER BY (ap_id, metric, ts)
TTL toDateTime(ts) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS points_mv_v1 ON CLUSTER <cluster> TO points_local_v1 AS
SELECT ap_id, metric, ts, value
FROM samples_local_v1
ARRAY JOIN mapKeys(metrics) AS metric, mapValues(metrics) AS value;

CREATE TABLE IF NOT EXISTS points_v1 ON CLUSTER <cluster> AS points_local_v1
ENGINE = Distributed(<cluster>, currentDatabase(), points_local_v1, cityHash64(ap_id));

CREATE TABLE IF NOT EXISTS texts_local_v1 ON CLUSTER <cluster> (
  ap_id LowCardinality(String),
  field LowCardinality(String),
  ts DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  value String CODEC(ZSTD(1))
) ENGINE = ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/{database}/texts_local_v1', '{replica}')
PARTITION BY toDate(ts)
ORDER BY (ap_id, field, ts)
TTL toDateTime(ts) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS texts_mv_v1 ON CLUSTER <cluster> TO texts_local_v1 AS
SELECT ap_id, field, ts, value
FROM samples_local_v1
ARRAY JOIN mapKeys(texts) AS field, mapValues(texts) AS value;

CREATE TABLE IF NOT EXISTS texts_v1 ON CLUSTER <cluster> AS texts_local_v1
ENGINE = Distributed(<cluster>, currentDatabase(), texts_local_v1, cityHash64(ap_id));

-- One row per agent, metric and minute, for charts over days.
CREATE TABLE IF NOT EXISTS minutes_local_v1 ON CLUSTER <cluster> (
  ap_id LowCardinality(String),
  metric LowCardinality(String),
  minute DateTime64(0, 'UTC') CODEC(Delta, ZSTD(1)),
  n SimpleAggregateFunction(sum, UInt64),
  total SimpleAggregateFunction(sum, Float64)
) ENGINE = ReplicatedAggregatingMergeTree('/clickhouse/tables/{shard}/{database}/minutes_local_v1', '{replica}')
PARTITION BY toYYYYMM(minute)
ORDER BY (ap_id, metric, minute)
TTL toDateTime(minute) + INTERVAL 400 DAY
SETTINGS ttl_only_drop_parts = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS minutes_mv_v1 ON CLUSTER <cluster> TO minutes_local_v1 AS
SELECT
  ap_id,
  metric,
  toDateTime64(floor(toUnixTimestamp64Milli(ts) / 60000) * 60, 0, 'UTC') AS minute,
  count() AS n,
  sum(value) AS total
FROM samples_local_v1
ARRAY JOIN mapKeys(metrics) AS metric, mapValues(metrics) AS value
GROUP BY ap_id, metric, minute;

CREATE TABLE IF NOT EXISTS minutes_v1 ON CLUSTER <cluster> AS minutes_local_v1
ENGINE = Distributed(<cluster>, currentDatabase(), minutes_local_v1, cityHash64(ap_id));

-- Which metrics an agent has, and when each was last heard of.
CREATE TABLE IF NOT EXISTS metrics_local_v1 ON CLUSTER <cluster> (
  ap_id LowCardinality(String),
  metric LowCardinality(String),
  last_seen SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
) ENGINE = ReplicatedAggregatingMergeTree('/clickhouse/tables/{shard}/{database}/metrics_local_v1', '{replica}')
ORDER BY (ap_id, metric);

CREATE MATERIALIZED VIEW IF NOT EXISTS metrics_mv_v1 ON CLUSTER <cluster> TO metrics_local_v1 AS
SELECT ap_id, metric, max(ts) AS last_seen
FROM samples_local_v1
ARRAY JOIN mapKeys(metrics) AS metric
GROUP BY ap_id, metric;

CREATE TABLE IF NOT EXISTS metrics_v1 ON CLUSTER <cluster> AS metrics_local_v1
ENGINE = Distributed(<cluster>, currentDatabase(), metrics_local_v1, cityHash64(ap_id));

-- When each agent was last heard of.
CREATE TABLE IF NOT EXISTS agents_local_v1 ON CLUSTER <cluster> (
  ap_id String,
  last_seen SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
) ENGINE = ReplicatedAggregatingMergeTree('/clickhouse/tables/{shard}/{database}/agents_local_v1', '{replica}')
ORDER BY ap_id;

CREATE MATERIALIZED VIEW IF NOT EXISTS agents_mv_v1 ON CLUSTER <cluster> TO agents_local_v1 AS
SELECT ap_id, max(ts) AS last_seen
FROM samples_local_v1
GROUP BY ap_id;

CREATE TABLE IF NOT EXISTS agents_v1 ON CLUSTER <cluster> AS agents_local_v1
ENGINE = Distributed(<cluster>, currentDatabase(), agents_local_v1, cityHash64(ap_id));

-- The way in: what comes is spread over the shards, and is committed there when the insert returns.
CREATE TABLE IF NOT EXISTS samples_v1 ON CLUSTER <cluster> AS samples_local_v1
ENGINE = Distributed(<cluster>, currentDatabase(), samples_local_v1, cityHash64(ap_id));
