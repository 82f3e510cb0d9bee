-- The shards delete their journals after an insert. So an insert is on disk before it is acknowledged, and an insert that is repeated
-- after a long outage is still recognised, although all shards have inserted meanwhile: two per second and shard.

ALTER TABLE points_v1 MODIFY SETTING
  fsync_after_insert = 1, fsync_part_directory = 1, non_replicated_deduplication_window = 20000;

ALTER TABLE texts_v1 MODIFY SETTING
  fsync_after_insert = 1, fsync_part_directory = 1, non_replicated_deduplication_window = 20000;

ALTER TABLE minutes_v1 MODIFY SETTING
  fsync_after_insert = 1, fsync_part_directory = 1, non_replicated_deduplication_window = 20000;

ALTER TABLE network_minutes_v1 MODIFY SETTING
  fsync_after_insert = 1, fsync_part_directory = 1, non_replicated_deduplication_window = 20000;

ALTER TABLE agents_v1 MODIFY SETTING
  fsync_after_insert = 1, fsync_part_directory = 1, non_replicated_deduplication_window = 20000;
