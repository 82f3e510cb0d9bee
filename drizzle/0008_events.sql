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
	`owner_kind` text NOT NULL,
	`filter` text NOT NULL,
	`kind` text NOT NULL,
	`address` text NOT NULL,
	`sealed_secret` text,
	`has_credentials` integer DEFAULT false NOT NULL,
	`created_at` integer NOT NULL,
	`revision` integer DEFAULT 1 NOT NULL,
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
	`owner_id` text,
	`text` text NOT NULL,
	`fired_at` integer NOT NULL,
	`resolved_at` integer,
	`acknowledged_at` integer,
	`acknowledged_by` text,
	`is_silenced` integer DEFAULT false NOT NULL
);
--> statement-breakpoint
CREATE INDEX `alerts_open` ON `alerts` (`rule_id`,`ap_id`) WHERE resolved_at is null;--> statement-breakpoint
CREATE INDEX `alerts_agent` ON `alerts` (`ap_id`,`fired_at`);--> statement-breakpoint
CREATE INDEX `alerts_fired` ON `alerts` (`fired_at`);--> statement-breakpoint
CREATE TABLE `silences` (
	`id` text PRIMARY KEY NOT NULL,
	`selector` text NOT NULL,
	`reason` text NOT NULL,
	`author` text NOT NULL,
	`created_at` integer NOT NULL,
	`until` integer NOT NULL
);
