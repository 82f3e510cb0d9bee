import type { GroupStore } from "../accounts/group-store.ts";
import type { JobRechecks } from "../accounts/owned-jobs.ts";
import type { Actor } from "../auth/identity.ts";
import { authorize } from "../auth/permissions.ts";
import { Conflict, NotFound } from "../lib/errors.ts";
import type { Group, GroupSave } from "../schemas/groups.ts";
import type { VisibleGroups } from "./visible-groups.ts";

/** Named selectors. Administrators manage them, others read those that they may see. */
export interface Groups {
  list(actor: Actor): Promise<Group[]>;
  read(actor: Actor, name: string): Promise<Group>;
  /** Creates or replaces a group. */
  save(actor: Actor, name: string, group: GroupSave): Promise<Group>;
  /** Throws `Conflict` if grants refer to the group. */
  delete(actor: Actor, name: string): Promise<void>;
}

/** Accounts that an error names. */
const MAX_NAMES = 20;

export function createGroups(store: GroupStore, visibleGroups: VisibleGroups, rechecks: JobRechecks): Groups {
  return {
    async list(actor) {
      authorize(actor, "groups.list");
      const isVisible = await visibleGroups(actor);
      return (await store.list()).filter(({ name }) => isVisible(name));
    },

    async read(actor, name) {
      authorize(actor, "groups.read");
      const isVisible = await visibleGroups(actor);
      const group = await store.find(name);
      if (group === undefined || !isVisible(name)) throw new NotFound("Group");
      return group;
    },

    async save(actor, name, { selector, description }) {
      authorize(actor, "groups.save");
      const group = { name, selector, description };
      await store.save(group, actor);
      rechecks.recheckJobsOf({ group: name });
      return group;
    },

    async delete(actor, name) {
      authorize(actor, "groups.delete");
      if (await store.delete(name, actor)) return;
      const accounts = await store.accountsWith(name);
      if (accounts.length === 0 || (await store.find(name)) === undefined) throw new NotFound("Group");
      const more = accounts.length > MAX_NAMES ? ` and ${accounts.length - MAX_NAMES} more` : "";
      const of = accounts.length === 1 ? "1 account refer" : `${accounts.length} accounts refer`;
      throw new Conflict(`The grants of ${of} to this group: ${accounts.slice(0, MAX_NAMES).join(", ")}${more}`);
    },
  };
}
