CREATE TABLE `jobs` (
	`job_number` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`state` text NOT NULL,
	`owner_id` text NOT NULL,
	`owner` text NOT NULL,
	`target` text,
	`detail` text NOT NULL,
	`messages` integer NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `jobs_owner` ON `jobs` (`owner_id`,`created_at`);--> statement-breakpoint
CREATE INDEX `jobs_created` ON `jobs` (`created_at`);--> statement-breakpoint
CREATE INDEX `jobs_updated` ON `jobs` (`updated_at`);