-- ClickHouse refuses an insert while less than 32 MB are free. A disk that fills up while a part is being written has left a part
-- behind that could not be read.

ALTER TABLE points_v1 MODIFY SETTING min_free_disk_bytes_to_perform_insert = 33554432;

ALTER TABLE texts_v1 MODIFY SETTING min_free_disk_bytes_to_perform_insert = 33554432;

ALTER TABLE minutes_v1 MODIFY SETTING min_free_disk_bytes_to_perform_insert = 33554432;

ALTER TABLE network_minutes_v1 MODIFY SETTING min_free_disk_bytes_to_perform_insert = 33554432;

ALTER TABLE agents_v1 MODIFY SETTING min_free_disk_bytes_to_perform_insert = 33554432;
