CREATE TABLE `events` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`at` integer NOT NULL,
	`type` text NOT NULL,
	`severity` text NOT NULL,
	`ap_id` text,
	`labels` text DEFAULT '{}' NOT NULL,
	`owner_id` text,
	`actor` text,
	`data` text DEFAULT '{}' NOT NULL,
	`source` text
);
--> statement-breakpoint
CREATE UNIQUE INDEX `events_source_unique` ON `events` (`source`);--> statement-breakpoint
CREATE INDEX `events_type` ON `events` (`type`,`id`);--> statement-breakpoint
CREATE INDEX `events_agent` ON `events` (`ap_id`,`id`) WHERE ap_id is not null;--> statement-breakpoint
CREATE INDEX `events_age` ON `events` (`at`);--> statement-breakpoint
CREATE TABLE `subscriptions` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`owner_id` text NOT NULL,
	`owner` text NOT NULL,
	`filter` text NOT NULL,
	`kind` text NOT NULL,
	`address` text NOT NULL,
	`sealed_secret` text,
	`created_at` integer NOT NULL,
	`cursor` integer NOT NULL,
	`due_at` integer,
	`failures` integer DEFAULT 0 NOT NULL,
	`failing_since` integer,
	`last_error` text,
	`delivered_at` integer,
	`stopped_at` integer
);
--> statement-breakpoint
CREATE INDEX `subscriptions_owner` ON `subscriptions` (`owner_id`);--> statement-breakpoint
CREATE TABLE `alert_members` (
	`rule_id` text NOT NULL,
	`ap_id` text NOT NULL,
	`group_value` text NOT NULL,
	PRIMARY KEY(`rule_id`, `ap_id`)
);
--> statement-breakpoint
CREATE INDEX `alert_members_group` ON `alert_members` (`rule_id`,`group_value`);--> statement-breakpoint
CREATE TABLE `alert_rules` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`spec` text NOT NULL,
	`is_enabled` integer NOT NULL,
	`version` integer NOT NULL,
	`created_by` text NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `alert_rules_name_unique` ON `alert_rules` (`name`);--> statement-breakpoint
CREATE TABLE `alerts` (
	`id` text PRIMARY KEY NOT NULL,
	`rule_id` text NOT NULL,
	`rule` text NOT NULL,
	`severity` text NOT NULL,
	`ap_id` text,
	`group_value` text,
	`labels` text NOT NULL,
	`rule_labels` text NOT NULL,
	`owner_id` text,
	`text` text NOT NULL,
	`value` real,
	`fired_at` integer NOT NULL,
	`resolved_at` integer,
	`acknowledged_at` integer,
	`acknowledged_by` text,
	`is_silenced` integer DEFAULT false NOT NULL
);
--> statement-breakpoint
CREATE INDEX `alerts_open` ON `alerts` (`fired_at`) WHERE resolved_at is null;--> statement-breakpoint
CREATE UNIQUE INDEX `alerts_open_groups` ON `alerts` (`rule_id`,`group_value`) WHERE resolved_at is null and group_value is not null;--> statement-breakpoint
CREATE INDEX `alerts_silenced` ON `alerts` (`id`) WHERE is_silenced and resolved_at is null;--> statement-breakpoint
CREATE INDEX `alerts_agent` ON `alerts` (`ap_id`,`fired_at`);--> statement-breakpoint
CREATE INDEX `alerts_fired` ON `alerts` (`fired_at`);--> statement-breakpoint
CREATE TABLE `silences` (
	`id` text PRIMARY KEY NOT NULL,
	`selector` text NOT NULL,
	`reason` text NOT NULL,
	`author_id` text NOT NULL,
	`author` text NOT NULL,
	`created_at` integer NOT NULL,
	`until` integer NOT NULL
);
--> statement-breakpoint
-- Rules to start with. They do nothing until an administrator enables them.
INSERT INTO alert_rules (id, name, spec, is_enabled, version, created_by, updated_at) VALUES
  ('5g-offline', '5G: offline',
    '{"selector":"technology=5G","condition":{"no_report_s":60},"for_s":0,"clear":{"for_s":30},"severity":"critical","labels":{},"text":"{{ap_id}} has not reported for {{value}} s","description":"No report for a minute. Ends when reports have come again for half a minute."}', 0, 1, 'service', 0),
  ('5g-high-load', '5G: high load',
    '{"selector":"technology=5G","condition":{"metric":"RRU.PrbTotDl","op":">","value":90},"for_s":300,"clear":{"condition":{"metric":"RRU.PrbTotDl","op":"<","value":80},"for_s":60},"severity":"warning","labels":{},"text":"{{ap_id}}: resource blocks in use: {{value}} %","description":"Much load for five minutes."}', 0, 1, 'service', 0),
  ('5g-low-quality', '5G: low quality',
    '{"selector":"technology=5G","condition":{"metric":"quality","op":"<","value":0.3},"for_s":300,"clear":{"condition":{"metric":"quality","op":">","value":0.4},"for_s":60},"severity":"warning","labels":{},"text":"{{ap_id}}: quality {{value}}","description":"Low quality of the connections for five minutes."}', 0, 1, 'service', 0),
  ('5g-few-users', '5G: fewer users than on other days',
    '{"selector":"technology=5G","condition":{"metric":"users","op":"<","baseline":{"days":7,"factor":0.5}},"for_s":900,"clear":{"condition":{"metric":"users","op":">","baseline":{"days":7,"factor":0.7}},"for_s":300},"severity":"warning","labels":{},"text":"{{ap_id}} has {{value}} users, less than half of the usual number","description":"Less than half of the mean at this hour of the last seven days, for a quarter of an hour."}', 0, 1, 'service', 0),
  ('wifi-offline', 'WiFi: offline',
    '{"selector":"technology=WiFi","condition":{"no_report_s":60},"for_s":0,"clear":{"for_s":30},"severity":"critical","labels":{},"text":"{{ap_id}} has not reported for {{value}} s","description":"No report for a minute. Ends when reports have come again for half a minute."}', 0, 1, 'service', 0),
  ('wifi-high-load', 'WiFi: high load',
    '{"selector":"technology=WiFi","condition":{"metric":"channel_utilisation_pct","op":">","value":80},"for_s":300,"clear":{"condition":{"metric":"channel_utilisation_pct","op":"<","value":70},"for_s":60},"severity":"warning","labels":{},"text":"{{ap_id}}: channel utilisation: {{value}} %","description":"Much load for five minutes."}', 0, 1, 'service', 0),
  ('wifi-low-quality', 'WiFi: low quality',
    '{"selector":"technology=WiFi","condition":{"metric":"quality","op":"<","value":0.3},"for_s":300,"clear":{"condition":{"metric":"quality","op":">","value":0.4},"for_s":60},"severity":"warning","labels":{},"text":"{{ap_id}}: quality {{value}}","description":"Low quality of the connections for five minutes."}', 0, 1, 'service', 0),
  ('wifi-few-users', 'WiFi: fewer users than on other days',
    '{"selector":"technology=WiFi","condition":{"metric":"users","op":"<","baseline":{"days":7,"factor":0.5}},"for_s":900,"clear":{"condition":{"metric":"users","op":">","baseline":{"days":7,"factor":0.7}},"for_s":300},"severity":"warning","labels":{},"text":"{{ap_id}} has {{value}} users, less than half of the usual number","description":"Less than half of the mean at this hour of the last seven days, for a quarter of an hour."}', 0, 1, 'service', 0),
  ('lifi-offline', 'LiFi: offline',
    '{"selector":"technology=LiFi","condition":{"no_report_s":60},"for_s":0,"clear":{"for_s":30},"severity":"critical","labels":{},"text":"{{ap_id}} has not reported for {{value}} s","description":"No report for a minute. Ends when reports have come again for half a minute."}', 0, 1, 'service', 0),
  ('lifi-high-load', 'LiFi: high load',
    '{"selector":"technology=LiFi","condition":{"metric":"load","op":">","value":0.9},"for_s":300,"clear":{"condition":{"metric":"load","op":"<","value":0.8},"for_s":60},"severity":"warning","labels":{},"text":"{{ap_id}}: load: {{value}}","description":"Much load for five minutes."}', 0, 1, 'service', 0),
  ('lifi-low-quality', 'LiFi: low quality',
    '{"selector":"technology=LiFi","condition":{"metric":"quality","op":"<","value":0.3},"for_s":300,"clear":{"condition":{"metric":"quality","op":">","value":0.4},"for_s":60},"severity":"warning","labels":{},"text":"{{ap_id}}: quality {{value}}","description":"Low quality of the connections for five minutes."}', 0, 1, 'service', 0),
  ('lifi-few-users', 'LiFi: fewer users than on other days',
    '{"selector":"technology=LiFi","condition":{"metric":"users","op":"<","baseline":{"days":7,"factor":0.5}},"for_s":900,"clear":{"condition":{"metric":"users","op":">","baseline":{"days":7,"factor":0.7}},"for_s":300},"severity":"warning","labels":{},"text":"{{ap_id}} has {{value}} users, less than half of the usual number","description":"Less than half of the mean at this hour of the last seven days, for a quarter of an hour."}', 0, 1, 'service', 0),
  ('lifi-blocked', 'LiFi: blocked for long',
    '{"selector":"technology=LiFi","condition":{"metric":"blockage","op":">=","value":1},"for_s":120,"clear":{"for_s":10},"severity":"warning","labels":{},"text":"The light path of {{ap_id}} is blocked","description":"The light path is blocked for two minutes. People who walk by block it for seconds."}', 0, 1, 'service', 0),
  ('site-offline', 'Site: most access points offline',
    '{"selector":"site","condition":{"no_report_s":60},"for_s":0,"clear":{"for_s":30},"group":{"by":"site","percent":50},"severity":"critical","labels":{},"text":"{{value}} % of the access points of {{group}} do not report","description":"One alert for a whole site. Half of its access points or more have not reported for a minute."}', 0, 1, 'service', 0);
