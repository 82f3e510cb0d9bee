-- One row per agent, metric and minute, for charts over days. Fed by the samples themselves; what is sent again does not get that
-- far (src/telemetry/novelty.ts). What is stored already is summed up first: samples that come in the middle of this file are not.

DROP VIEW IF EXISTS minutes_mv_v1;

CREATE TABLE IF NOT EXISTS minutes_v1 (
  ap_id LowCardinality(String),
  metric LowCardinality(String),
  minute DateTime64(0, 'UTC') CODEC(Delta, ZSTD(1)),
  n SimpleAggregateFunction(sum, UInt64),
  total SimpleAggregateFunction(sum, Float64)
) ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(minute)
ORDER BY (ap_id, metric, minute)
TTL toDateTime(minute) + INTERVAL 400 DAY
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000;

TRUNCATE TABLE minutes_v1;

INSERT INTO minutes_v1
SELECT ap_id, metric, toDateTime64(floor(toUnixTimestamp64Milli(ts) / 60000) * 60, 0, 'UTC') AS minute, count(), sum(value)
FROM points_v1 FINAL
GROUP BY ap_id, metric, minute
SETTINGS max_partitions_per_insert_block = 0;

CREATE MATERIALIZED VIEW IF NOT EXISTS minutes_mv_v1 TO minutes_v1 AS
SELECT
  ap_id,
  metric,
  toDateTime64(floor(toUnixTimestamp64Milli(ts) / 60000) * 60, 0, 'UTC') AS minute,
  count() AS n,
  sum(value) AS total
FROM samples_v1
ARRAY JOIN mapKeys(metrics) AS metric, mapValues(metrics) AS value
GROUP BY ap_id, metric, minute;
