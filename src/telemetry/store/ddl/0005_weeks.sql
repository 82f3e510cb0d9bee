-- Points and texts by week instead of by day: an insert makes one part for each partition that it touches, and an agent's backlog of
-- a month touched thirty. The tables keep their names. What is stored already is copied day by day; what arrives meanwhile goes into
-- the old table until the two are exchanged, and is copied after that. Copies of a value are one value. No TTL is set here: that is
-- for the retention settings, and a shorter one would drop rows before they are applied.

CREATE TABLE IF NOT EXISTS points_weeks (
  ap_id LowCardinality(String),
  metric LowCardinality(String),
  ts DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  value Float64 CODEC(ZSTD(1))
) ENGINE = ReplacingMergeTree
PARTITION BY toMonday(ts)
ORDER BY (ap_id, metric, ts)
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS texts_weeks (
  ap_id LowCardinality(String),
  field LowCardinality(String),
  ts DateTime64(3, 'UTC') CODEC(Delta, ZSTD(1)),
  value String CODEC(ZSTD(1))
) ENGINE = ReplacingMergeTree
PARTITION BY toMonday(ts)
ORDER BY (ap_id, field, ts)
SETTINGS ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000;

-- for each: SELECT DISTINCT toString(toDate(ts)) AS day FROM points_v1 WHERE exists(SELECT name FROM system.tables WHERE database = currentDatabase() AND name = 'points_v1' AND partition_key = 'toDate(ts)') ORDER BY day
INSERT INTO points_weeks SELECT ap_id, metric, ts, value FROM points_v1 WHERE toDate(ts) = {day:Date};

-- for each: SELECT DISTINCT toString(toDate(ts)) AS day FROM texts_v1 WHERE exists(SELECT name FROM system.tables WHERE database = currentDatabase() AND name = 'texts_v1' AND partition_key = 'toDate(ts)') ORDER BY day
INSERT INTO texts_weeks SELECT ap_id, field, ts, value FROM texts_v1 WHERE toDate(ts) = {day:Date};

-- for each: SELECT name FROM system.tables WHERE database = currentDatabase() AND name = 'points_v1' AND partition_key = 'toDate(ts)'
EXCHANGE TABLES points_v1 AND points_weeks;

-- for each: SELECT name FROM system.tables WHERE database = currentDatabase() AND name = 'texts_v1' AND partition_key = 'toDate(ts)'
EXCHANGE TABLES texts_v1 AND texts_weeks;

-- Inserts that began before the exchange still end in the old tables.
-- for each: SELECT DISTINCT 1 AS row FROM (SELECT ap_id FROM points_weeks UNION ALL SELECT ap_id FROM texts_weeks)
SELECT sleep(3) FORMAT Null;

-- for each: SELECT DISTINCT toString(toDate(ts)) AS day FROM points_weeks ORDER BY day
INSERT INTO points_v1 SELECT ap_id, metric, ts, value FROM points_weeks WHERE toDate(ts) = {day:Date};

-- for each: SELECT DISTINCT toString(toDate(ts)) AS day FROM texts_weeks ORDER BY day
INSERT INTO texts_v1 SELECT ap_id, field, ts, value FROM texts_weeks WHERE toDate(ts) = {day:Date};

DROP TABLE IF EXISTS points_weeks;

DROP TABLE IF EXISTS texts_weeks;
