-- The shards delete their journals after an insert. So an insert is on disk before it is acknowledged, and an insert that is repeated
-- after a long outage is still recognised, although all shards have inserted meanwhile: two per second and shard.

ALTER TABLE points_local_v1 ON CLUSTER <cluster> MODIFY SETTING
  fsync_after_insert = 1, fsync_part_directory = 1, replicated_deduplication_window = 20000,
  replicated_deduplication_window_seconds = 604800;

ALTER TABLE texts_local_v1 ON CLUSTER <cluster> MODIFY SETTING
  fsync_after_insert = 1, fsync_part_directory = 1, replicated_deduplication_window = 20000,
  replicated_deduplication_window_seconds = 604800;

ALTER TABLE minutes_local_v1 ON CLUSTER <cluster> MODIFY SETTING
  fsync_after_insert = 1, fsync_part_directory = 1, replicated_deduplication_window = 20000,
  replicated_deduplication_window_seconds = 604800;

ALTER TABLE network_minutes_local_v1 ON CLUSTER <cluster> MODIFY SETTING
  fsync_after_insert = 1, fsync_part_directory = 1, replicated_deduplication_window = 20000,
  replicated_deduplication_window_seconds = 604800;

ALTER TABLE agents_local_v1 ON CLUSTER <cluster> MODIFY SETTING
  fsync_after_insert = 1, fsync_part_directory = 1, replicated_deduplication_window = 20000,
  replicated_deduplication_window_seconds = 604800;
