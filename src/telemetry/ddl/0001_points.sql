-- One row per sample comes in; the view fans it out to one row per value, which is what reads want.

CREATE TABLE IF NOT EXISTS samples_v1 (
  ap_id String,
  ts DateTime64(3, 'UTC'),
  metrics Map(String, Float64)
) ENGINE = Null;

CREATE TABLE IF NOT EXISTS points_v1 (
  ap_id LowCardinality(String),
  metric LowCardinality(String),
  ts DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  value Float64 CODEC(ZSTD(1))
) ENGINE = MergeTree
PARTITION BY toDate(ts)
ORDER BY (ap_id, metric, ts)
TTL toDateTime(ts) + INTERVAL 30 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000;

CREATE MATERIALIZED VIEW IF NOT EXISTS points_mv_v1 TO points_v1 AS
SELECT ap_id, metric, ts, value
FROM samples_v1
ARRAY JOIN mapKeys(metrics) AS metric, mapValues(metrics) AS value;
