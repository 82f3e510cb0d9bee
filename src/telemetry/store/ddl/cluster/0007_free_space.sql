-- ClickHouse refuses an insert while less than 32 MB are free, so that it does not begin to write a part to a full disk. After a full disk
-- a part could not be read (docs/faults.md).

ALTER TABLE points_local_v1 ON CLUSTER <cluster> MODIFY SETTING min_free_disk_bytes_to_perform_insert = 33554432;

ALTER TABLE texts_local_v1 ON CLUSTER <cluster> MODIFY SETTING min_free_disk_bytes_to_perform_insert = 33554432;

ALTER TABLE minutes_local_v1 ON CLUSTER <cluster> MODIFY SETTING min_free_disk_bytes_to_perform_insert = 33554432;

ALTER TABLE network_minutes_local_v1 ON CLUSTER <cluster> MODIFY SETTING min_free_disk_bytes_to_perform_insert = 33554432;

ALTER TABLE agents_local_v1 ON CLUSTER <cluster> MODIFY SETTING min_free_disk_bytes_to_perform_insert = 33554432;
