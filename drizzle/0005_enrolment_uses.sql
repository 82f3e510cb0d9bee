CREATE TABLE `enrolment_uses` (
	`token_hash` text PRIMARY KEY NOT NULL,
	`uses` integer NOT NULL
);
