ALTER TABLE `audit` ADD `detail` text;--> statement-breakpoint
ALTER TABLE `jobs` ADD `by_admin` integer DEFAULT false NOT NULL;