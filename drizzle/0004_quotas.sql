CREATE TABLE `emulations` (
	`job_number` text PRIMARY KEY NOT NULL,
	`owner_id` text NOT NULL,
	`owner` text NOT NULL,
	`access_points` integer NOT NULL,
	`created_at` integer NOT NULL,
	`ends_at` integer NOT NULL,
	`ended_at` integer,
	`removed_at` integer
);
--> statement-breakpoint
CREATE INDEX `emulations_running` ON `emulations` (`owner_id`) WHERE ended_at is null;--> statement-breakpoint
CREATE INDEX `emulations_kept` ON `emulations` (`ended_at`) WHERE removed_at is null;--> statement-breakpoint
CREATE INDEX `emulations_removed` ON `emulations` (`removed_at`);--> statement-breakpoint
ALTER TABLE `jobs` ADD `ends_at` integer;--> statement-breakpoint
CREATE INDEX `jobs_open` ON `jobs` (`owner_id`,`state`,`ends_at`) WHERE state in ('queued', 'running');