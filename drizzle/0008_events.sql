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
-- The triggers below write an event in the transaction of its cause. They copy only fields that are no secrets.
--
-- An event about an agent has the labels and the owner that the agent has at that time. If the agent was deleted before, they are those
-- of its last event.
CREATE TRIGGER events_agent_labels AFTER INSERT ON events WHEN new.ap_id IS NOT NULL AND new.labels = '{}' BEGIN
  UPDATE events SET (labels, owner_id) = (
    SELECT labels, owner_id FROM (
      SELECT 1 AS place, owner_id,
        (SELECT json_group_object(key, value) FROM agent_labels WHERE agent_labels.ap_id = agents.ap_id) AS labels
      FROM agents WHERE ap_id = new.ap_id
      UNION ALL SELECT * FROM (
        SELECT 2, owner_id, labels FROM events WHERE ap_id = new.ap_id AND id < new.id ORDER BY id DESC LIMIT 1)
      UNION ALL SELECT 3, new.owner_id, '{}'
    ) ORDER BY place LIMIT 1
  ) WHERE id = new.id;
END;
--> statement-breakpoint
CREATE TRIGGER events_of_agents AFTER INSERT ON audit
WHEN new.object GLOB 'agent:*' AND new.action NOT IN ('send command', 'label', 'repeated failed logins') AND new.action NOT GLOB 'command *'
BEGIN
  INSERT INTO events (at, type, severity, ap_id, actor, data) VALUES (
    new.at,
    CASE new.action WHEN 'create' THEN 'agent.registered' WHEN 'delete' THEN 'agent.deleted' ELSE 'agent.updated' END,
    'info', substr(new.object, 7), new.actor,
    iif(new.action IN ('create', 'delete'), '{}', json_object('action', new.action))
  );
END;
--> statement-breakpoint
-- The entry precedes the change of the labels, so the event has the labels after it.
CREATE TRIGGER events_of_labels AFTER INSERT ON audit WHEN new.object GLOB 'agent:*' AND new.action = 'label' BEGIN
  INSERT INTO events (at, type, severity, ap_id, labels, owner_id, actor, data)
  SELECT new.at, 'agent.relabelled', 'info', ap_id,
    json_patch((SELECT json_group_object(key, value) FROM agent_labels WHERE agent_labels.ap_id = agents.ap_id), new.detail -> '$.labels'),
    owner_id, new.actor, json_object('labels', json(new.detail -> '$.labels'))
  FROM agents WHERE ap_id = substr(new.object, 7);
END;
--> statement-breakpoint
-- A command is a name and arguments. Arguments may be secrets.
CREATE TRIGGER events_of_commands AFTER INSERT ON audit
WHEN new.object GLOB 'agent:*' AND new.action = 'send command' AND new.detail ->> '$.outcome' = 'queued'
BEGIN
  INSERT INTO events (at, type, severity, ap_id, actor, data)
  SELECT new.at, 'command.issued', 'info', substr(new.object, 7), new.actor,
    json_object('job_number', new.detail ->> '$.job_number', 'command', iif(name GLOB '*[^A-Za-z0-9_.:-]*', NULL, name))
  FROM (SELECT substr(command, 1, instr(command || ' ', ' ') - 1) AS name FROM (SELECT new.detail ->> '$.command' AS command));
END;
--> statement-breakpoint
-- An event that is about no agent belongs to the account that caused it.
CREATE TRIGGER events_of_accounts AFTER INSERT ON audit
WHEN (new.object GLOB 'user:*' OR new.object GLOB 'app:*') AND new.action <> 'repeated failed logins'
BEGIN
  INSERT INTO events (at, type, severity, owner_id, actor, data)
  SELECT new.at, type, 'info',
    CASE substr(new.actor, 1, instr(new.actor, ':'))
      WHEN 'user:' THEN (SELECT id FROM users WHERE username = substr(new.actor, 6))
      WHEN 'admin:' THEN (SELECT id FROM users WHERE username = substr(new.actor, 7))
      WHEN 'app:' THEN (SELECT id FROM apps WHERE app_name = substr(new.actor, 5)) END,
    new.actor,
    CASE
      WHEN type <> 'grants.changed' THEN json_object('account', new.object, 'action', new.action)
      WHEN new.detail -> '$.group' IS NULL
        THEN json_object('account', new.object, 'action', new.action, 'grants', json(new.detail -> '$.grants'))
      ELSE json_object('account', new.object, 'action', new.action, 'group', new.detail ->> '$.group', 'selector', new.detail ->> '$.selector')
    END
  FROM (SELECT CASE
    WHEN new.action = 'create' THEN 'account.created'
    WHEN new.action = 'delete' THEN 'account.deleted'
    WHEN new.action GLOB '*change grants*' THEN 'grants.changed'
    ELSE 'account.updated' END AS type);
END;
--> statement-breakpoint
-- One event for all agents that a request relabels, or that an emulation creates or removes: they may be thousands.
CREATE TRIGGER events_of_others AFTER INSERT ON audit
WHEN new.object GLOB 'group:*' OR new.object GLOB 'enrolment_token:*' OR new.action = 'repeated failed logins'
  OR (new.object = 'agents' AND new.action = 'label')
  OR (new.object GLOB 'job:*' AND new.action IN ('spin up', 'remove emulated agents'))
BEGIN
  INSERT INTO events (at, type, severity, owner_id, actor, data)
  SELECT new.at, type, iif(type = 'login.failing', 'warning', 'info'),
    coalesce(
      (SELECT owner_id FROM emulations WHERE job_number = new.detail ->> '$.job_number'),
      CASE substr(new.actor, 1, instr(new.actor, ':'))
        WHEN 'user:' THEN (SELECT id FROM users WHERE username = substr(new.actor, 6))
        WHEN 'admin:' THEN (SELECT id FROM users WHERE username = substr(new.actor, 7))
        WHEN 'app:' THEN (SELECT id FROM apps WHERE app_name = substr(new.actor, 5)) END),
    new.actor,
    CASE type
      WHEN 'group.changed' THEN json_object('group', name, 'action', new.action, 'selector', new.detail ->> '$.selector')
      WHEN 'enrolment_token.changed' THEN json_object('token', name, 'action', new.action)
      WHEN 'login.failing' THEN json_object('object', new.object, 'failures', new.detail ->> '$.failures', 'address', new.detail ->> '$.address')
      WHEN 'agent.relabelled' THEN json_object('agents', new.detail ->> '$.agents', 'selector', new.detail ->> '$.selector', 'labels', json(new.detail -> '$.labels'))
      WHEN 'agent.deleted' THEN json_object('agents', new.detail ->> '$.access_points', 'job_number', name)
      ELSE json_object('job_number', name, 'agents', (SELECT access_points FROM emulations WHERE job_number = name))
    END
  FROM (SELECT substr(new.object, instr(new.object, ':') + 1) AS name, CASE
    WHEN new.action = 'repeated failed logins' THEN 'login.failing'
    WHEN new.object GLOB 'group:*' THEN 'group.changed'
    WHEN new.object GLOB 'enrolment_token:*' THEN 'enrolment_token.changed'
    WHEN new.object = 'agents' THEN 'agent.relabelled'
    WHEN new.action = 'spin up' THEN 'emulation.started'
    ELSE 'agent.deleted' END AS type);
END;
--> statement-breakpoint
-- Not audited: an agent's first login.
CREATE TRIGGER events_of_onboarding AFTER UPDATE OF onboard ON agents WHEN new.onboard AND NOT old.onboard BEGIN
  INSERT INTO events (at, type, severity, ap_id, actor)
  VALUES (CAST(unixepoch('subsec') * 1000 AS INTEGER), 'agent.onboarded', 'info', new.ap_id, 'agent:' || new.ap_id);
END;
--> statement-breakpoint
-- Not audited: the start of jobs that change nothing. Commands and emulations have audit entries.
CREATE TRIGGER events_of_new_jobs AFTER INSERT ON jobs WHEN new.kind NOT IN ('command', 'emulator') BEGIN
  INSERT INTO events (at, type, severity, owner_id, actor, data)
  VALUES (new.created_at, 'job.started', 'info', new.owner_id, new.owner,
    json_object('job_number', new.job_number, 'kind', new.kind, 'agent', new.target));
END;
--> statement-breakpoint
-- The row of the job decides, not the audit trail, which omits some ends. The entry of an audited end directly precedes the update.
CREATE TRIGGER events_of_ended_jobs AFTER UPDATE OF state ON jobs
WHEN old.state IN ('queued', 'running') AND new.state NOT IN ('queued', 'running')
BEGIN
  INSERT INTO events (at, type, severity, ap_id, owner_id, actor, data)
  SELECT new.updated_at,
    CASE new.kind
      WHEN 'command' THEN CASE new.state WHEN 'expired' THEN 'command.expired' WHEN 'cancelled' THEN 'command.cancelled' ELSE 'command.answered' END
      WHEN 'emulator' THEN 'emulation.ended'
      ELSE 'job.ended' END,
    iif(new.state IN ('failed', 'expired'), 'warning', 'info'),
    iif(new.kind = 'command', new.target, NULL), new.owner_id,
    (SELECT actor FROM audit WHERE id = (SELECT max(id) FROM audit)
      AND action IN ('command ' || new.state, 'emulation ' || new.state) AND detail ->> '$.job_number' = new.job_number),
    CASE new.kind
      WHEN 'command' THEN json_object('job_number', new.job_number, 'command', iif(name GLOB '*[^A-Za-z0-9_.:-]*', NULL, name), 'outcome', new.state)
      WHEN 'emulator' THEN json_object('job_number', new.job_number, 'outcome', new.state,
        'agents', (SELECT access_points FROM emulations WHERE job_number = new.job_number))
      ELSE json_object('job_number', new.job_number, 'kind', new.kind, 'agent', new.target, 'outcome', new.state)
    END
  FROM (SELECT substr(old.detail, 1, instr(old.detail || ' ', ' ') - 1) AS name);
END;
--> statement-breakpoint
-- A job without a result whose row is deleted, because its stream was not used any more.
CREATE TRIGGER events_of_deleted_jobs AFTER DELETE ON jobs
WHEN old.state IN ('queued', 'running') AND old.kind <> 'command'
BEGIN
  INSERT INTO events (at, type, severity, owner_id, data)
  VALUES (CAST(unixepoch('subsec') * 1000 AS INTEGER), iif(old.kind = 'emulator', 'emulation.ended', 'job.ended'), 'info', old.owner_id,
    iif(old.kind = 'emulator',
      json_object('job_number', old.job_number, 'outcome', 'removed',
        'agents', (SELECT access_points FROM emulations WHERE job_number = old.job_number)),
      json_object('job_number', old.job_number, 'kind', old.kind, 'agent', old.target, 'outcome', 'removed')));
END;
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
