CREATE TABLE `outbox` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`job_number` text NOT NULL,
	`part` integer NOT NULL,
	`topic` text NOT NULL,
	`payload` text NOT NULL,
	`created_at` integer NOT NULL,
	`due_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`published` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `outbox_due` ON `outbox` (`due_at`);--> statement-breakpoint
CREATE INDEX `outbox_expiry` ON `outbox` (`expires_at`);--> statement-breakpoint
CREATE INDEX `outbox_job` ON `outbox` (`job_number`,`part`);--> statement-breakpoint
CREATE INDEX `jobs_target` ON `jobs` (`target`,`kind`,`created_at`);