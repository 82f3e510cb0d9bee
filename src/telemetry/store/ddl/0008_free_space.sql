-- ClickHouse refuses an insert while less than 32 MB are free, so that it does not begin to write a part to a full disk. After a full disk
-- a part could not be read (docs/faults.md).

ALTER TABLE points_v1 MODIFY SETTING min_free_disk_bytes_to_perform_insert = 33554432;

ALTER TABLE texts_v1 MODIFY SETTING min_free_disk_bytes_to_perform_insert = 33554432;

ALTER TABLE minutes_v1 MODIFY SETTING min_free_disk_bytes_to_perform_insert = 33554432;

ALTER TABLE network_minutes_v1 MODIFY SETTING min_free_disk_bytes_to_perform_insert = 33554432;

ALTER TABLE agents_v1 MODIFY SETTING min_free_disk_bytes_to_perform_insert = 33554432;
