CREATE TABLE `agent_labels` (
	`ap_id` text NOT NULL,
	`key` text NOT NULL,
	`value` text NOT NULL,
	PRIMARY KEY(`ap_id`, `key`)
);
--> statement-breakpoint
CREATE INDEX `agent_labels_value` ON `agent_labels` (`key`,`value`,`ap_id`);--> statement-breakpoint
CREATE TABLE `enrolment_tokens` (
	`id` text PRIMARY KEY NOT NULL,
	`token_hash` text NOT NULL,
	`prefix` text NOT NULL,
	`description` text NOT NULL,
	`labels` text NOT NULL,
	`max_uses` integer,
	`expires_at` integer,
	`created_by` text NOT NULL,
	`created_at` integer NOT NULL,
	`revoked_at` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `enrolment_tokens_token_hash_unique` ON `enrolment_tokens` (`token_hash`);--> statement-breakpoint
CREATE TABLE `groups` (
	`name` text PRIMARY KEY NOT NULL,
	`selector` text NOT NULL,
	`description` text NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
ALTER TABLE `agents` ADD `labels` text DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE `agents` ADD `owner_id` text;--> statement-breakpoint
ALTER TABLE `agents` ADD `owner` text;--> statement-breakpoint
CREATE INDEX `agents_owner` ON `agents` (`owner_id`) WHERE owner_id is not null;--> statement-breakpoint
ALTER TABLE `apps` ADD `grants` text;--> statement-breakpoint
ALTER TABLE `users` ADD `grants` text;--> statement-breakpoint
-- Emulated agents belong to the account that started their emulation.
UPDATE agents SET (owner_id, owner) = (
  SELECT owner_id, substr(replace(substr(owner, instr(owner, ':') + 1), '''', '_'), 1, 63) FROM emulations
  WHERE emulations.job_number = json_extract(agents.configuration, '$.job_number')
)
WHERE ap_id >= 'emu-' AND ap_id < 'emu.';
--> statement-breakpoint
INSERT INTO agent_labels (ap_id, key, value)
SELECT ap_id, 'emulated', iif(ap_id GLOB 'emu-*', 'true', 'false') FROM agents
UNION ALL SELECT ap_id, 'owner', owner FROM agents WHERE owner IS NOT NULL
UNION ALL SELECT ap_id, 'technology', configuration ->> '$.access_point_type' FROM agents
  WHERE json_type(agents.configuration, '$.access_point_type') = 'text'
    AND agents.configuration ->> '$.access_point_type' NOT GLOB '*[^A-Za-z0-9._/@:+-]*'
    AND length(agents.configuration ->> '$.access_point_type') BETWEEN 1 AND 63;
--> statement-breakpoint
CREATE TRIGGER agent_labels_insert AFTER INSERT ON agents BEGIN
  INSERT INTO agent_labels (ap_id, key, value)
  SELECT new.ap_id, label.key, label.value FROM json_each(new.labels) AS label
  UNION ALL SELECT new.ap_id, 'emulated', iif(new.ap_id GLOB 'emu-*', 'true', 'false')
  UNION ALL SELECT new.ap_id, 'owner', new.owner WHERE new.owner IS NOT NULL
  UNION ALL SELECT new.ap_id, 'technology', new.configuration ->> '$.access_point_type'
    WHERE json_type(new.configuration, '$.access_point_type') = 'text'
    AND new.configuration ->> '$.access_point_type' NOT GLOB '*[^A-Za-z0-9._/@:+-]*'
    AND length(new.configuration ->> '$.access_point_type') BETWEEN 1 AND 63;
END;
--> statement-breakpoint
-- Writes only the labels that differ: one request may change the labels of thousands of agents.
CREATE TRIGGER agent_labels_update AFTER UPDATE OF labels ON agents WHEN old.labels <> new.labels BEGIN
  DELETE FROM agent_labels WHERE ap_id = new.ap_id AND key IN (
    SELECT key FROM json_each(old.labels) EXCEPT SELECT key FROM json_each(new.labels)
  );
  INSERT INTO agent_labels (ap_id, key, value)
  SELECT new.ap_id, key, value FROM (
    SELECT key, value FROM json_each(new.labels) EXCEPT SELECT key, value FROM json_each(old.labels)
  ) WHERE true
  ON CONFLICT (ap_id, key) DO UPDATE SET value = excluded.value;
END;
--> statement-breakpoint
CREATE TRIGGER agent_service_labels_update AFTER UPDATE OF configuration, owner ON agents
WHEN (old.owner, old.configuration -> '$.access_point_type') IS NOT (new.owner, new.configuration -> '$.access_point_type')
BEGIN
  DELETE FROM agent_labels WHERE ap_id = new.ap_id AND key IN ('owner', 'technology');
  INSERT INTO agent_labels (ap_id, key, value)
  SELECT new.ap_id, 'owner', new.owner WHERE new.owner IS NOT NULL
  UNION ALL SELECT new.ap_id, 'technology', new.configuration ->> '$.access_point_type'
    WHERE json_type(new.configuration, '$.access_point_type') = 'text'
    AND new.configuration ->> '$.access_point_type' NOT GLOB '*[^A-Za-z0-9._/@:+-]*'
    AND length(new.configuration ->> '$.access_point_type') BETWEEN 1 AND 63;
END;
--> statement-breakpoint
CREATE TRIGGER agent_labels_delete AFTER DELETE ON agents BEGIN
  DELETE FROM agent_labels WHERE ap_id = old.ap_id;
END;
