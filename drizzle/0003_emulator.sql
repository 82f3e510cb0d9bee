CREATE TABLE `gazetteer` (
	`key` text NOT NULL,
	`weight` integer NOT NULL,
	`place_id` integer NOT NULL,
	`name` text NOT NULL,
	`country` text NOT NULL,
	`latitude` real NOT NULL,
	`longitude` real NOT NULL,
	`edition` integer NOT NULL,
	PRIMARY KEY(`key`, `weight`, `place_id`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `gazetteer_editions` (
	`edition` integer PRIMARY KEY NOT NULL,
	`loaded_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `emulator_parts` (
	`job_number` text NOT NULL,
	`part` integer NOT NULL,
	`state` text NOT NULL,
	`emulator` text,
	PRIMARY KEY(`job_number`, `part`)
);
