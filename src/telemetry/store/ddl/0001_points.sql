-- One row per sample comes in; views fan it out to one row per value, which is what reads want. Each view reads the samples
-- themselves, not another view's table: a batch that is sent again is then told apart table by table.

CREATE TABLE IF NOT EXISTS samples_v1 (
  ap_id String,
  ts DateTime64(3, 'UTC'),
  metrics Map(String, Float64),
  texts Map(String, String)
) ENGINE = Null;

-- A value is named by its agent, metric and time; sent twice, it is one value.
CREATE TABLE IF NOT EXISTS points_v1 (
  ap_id LowCardinality(String),
  metric LowCardinality(String),
  ts DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  value Float64 CODEC(ZSTD(1))
) ENGINE = ReplacingMergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, metric, ts)
TTL toDateTime(ts) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000;

CREATE MATERIALIZED VIEW IF NOT EXISTS points_mv_v1 TO points_v1 AS
SELECT ap_id, metric, ts, value
FROM samples_v1
ARRAY JOIN mapKeys(metrics) AS metric, mapValues(metrics) AS value;

CREATE TABLE IF NOT EXISTS texts_v1 (
  ap_id LowCardinality(String),
  field LowCardinality(String),
  ts DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  value String CODEC(ZSTD(1))
) ENGINE = ReplacingMergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, field, ts)
TTL toDateTime(ts) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000;

CREATE MATERIALIZED VIEW IF NOT EXISTS texts_mv_v1 TO texts_v1 AS
SELECT ap_id, field, ts, value
FROM samples_v1
ARRAY JOIN mapKeys(texts) AS field, mapValues(texts) AS value;

-- Which metrics an agent has, and when each was last heard of.
CREATE TABLE IF NOT EXISTS metrics_v1 (
  ap_id LowCardinality(String),
  metric LowCardinality(String),
  last_seen SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
) ENGINE = AggregatingMergeTree
ORDER BY (ap_id, metric)
SETTINGS non_replicated_deduplication_window = 1000;

CREATE MATERIALIZED VIEW IF NOT EXISTS metrics_mv_v1 TO metrics_v1 AS
SELECT ap_id, metric, max(ts) AS last_seen
FROM samples_v1
ARRAY JOIN mapKeys(metrics) AS metric
GROUP BY ap_id, metric;

-- When each agent was last heard of.
CREATE TABLE IF NOT EXISTS agents_v1 (
  ap_id String,
  last_seen SimpleAggregateFunction(max, DateTime64(3, 'UTC'))
) ENGINE = AggregatingMergeTree
ORDER BY ap_id
SETTINGS non_replicated_deduplication_window = 1000;

CREATE MATERIALIZED VIEW IF NOT EXISTS agents_mv_v1 TO agents_v1 AS
SELECT ap_id, max(ts) AS last_seen
FROM samples_v1
GROUP BY ap_id;
