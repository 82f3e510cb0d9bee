CREATE TABLE `agents` (
	`id` text PRIMARY KEY NOT NULL,
	`ap_id` text NOT NULL,
	`credential_kind` text NOT NULL,
	`credential` text NOT NULL,
	`configuration` text NOT NULL,
	`onboard` integer DEFAULT false NOT NULL,
	`version` integer NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `agents_ap_id_unique` ON `agents` (`ap_id`);--> statement-breakpoint
CREATE TABLE `apps` (
	`id` text PRIMARY KEY NOT NULL,
	`app_name` text NOT NULL,
	`sealed_api_key` text NOT NULL,
	`permissions` text NOT NULL,
	`version` integer NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `apps_app_name_unique` ON `apps` (`app_name`);--> statement-breakpoint
CREATE TABLE `attempts` (
	`key` text PRIMARY KEY NOT NULL,
	`count` integer NOT NULL,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `attempts_expiry` ON `attempts` (`expires_at`);--> statement-breakpoint
CREATE TABLE `audit` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`at` integer NOT NULL,
	`request_id` text NOT NULL,
	`actor` text NOT NULL,
	`action` text NOT NULL,
	`object` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `audit_actor` ON `audit` (`actor`,`id`);--> statement-breakpoint
CREATE INDEX `audit_object` ON `audit` (`object`,`id`);--> statement-breakpoint
CREATE TABLE `reset_tokens` (
	`token_hash` text PRIMARY KEY NOT NULL,
	`user_id` text NOT NULL,
	`expires_at` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `reset_tokens_user` ON `reset_tokens` (`user_id`);--> statement-breakpoint
CREATE INDEX `reset_tokens_expiry` ON `reset_tokens` (`expires_at`);--> statement-breakpoint
CREATE TABLE `users` (
	`id` text PRIMARY KEY NOT NULL,
	`username` text NOT NULL,
	`password_hash` text NOT NULL,
	`roles` text NOT NULL,
	`is_admin` integer GENERATED ALWAYS AS (instr(roles, '"admin"') > 0) VIRTUAL,
	`version` integer NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `users_username_unique` ON `users` (`username`);--> statement-breakpoint
CREATE INDEX `users_admins` ON `users` (`username`) WHERE is_admin;