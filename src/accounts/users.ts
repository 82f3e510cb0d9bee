import type { Actor } from "../auth/identity.ts";
import type { Passwords } from "../auth/passwords.ts";
import { authorize, authorizeAccount } from "../auth/permissions.ts";
import { type Role, scopesOfUser } from "../auth/roles.ts";
import { NotAllowed, NotFound } from "../lib/errors.ts";
import type { Grants } from "../schemas/accounts/grants.ts";
import type { TokenData, UserCreate, UserRegister, UserUpdate } from "../schemas/accounts/user.ts";
import type { Page } from "../schemas/primitives.ts";
import type { StoredGrant } from "./account-tables.ts";
import { anonymous } from "./audit.ts";
import { checkGrants } from "./grants.ts";
import type { GroupStore } from "./group-store.ts";
import type { JobRechecks, OwnedJobs } from "./owned-jobs.ts";
import type { UserStore } from "./user-store.ts";

export interface Users {
  signup(registration: UserRegister, requestId: string): Promise<TokenData>;
  /** Creates the first user, with the setup token. Administrators may call it as well, at any time. */
  setUp(actor: Actor, user: UserCreate): Promise<TokenData>;
  create(actor: Actor, user: UserCreate): Promise<TokenData>;
  list(actor: Actor, page: Page): Promise<TokenData[]>;
  me(actor: Actor): TokenData;
  read(actor: Actor, username: string): Promise<TokenData>;
  update(actor: Actor, username: string, changes: UserUpdate): Promise<TokenData>;
  delete(actor: Actor, username: string): Promise<void>;
  readGrants(actor: Actor, username: string): Promise<Grants>;
  changeGrants(actor: Actor, username: string, grants: Grants): Promise<Grants>;
}

export interface UsersOptions {
  store: UserStore;
  passwords: Passwords;
  /** Whether anyone may create an account. If false, only administrators may. */
  isSignupOpen: boolean;
  /** The grants of users who sign up. Null: operator of all agents. */
  newUserGrants: StoredGrant[] | null;
  groups: Pick<GroupStore, "selectors">;
  ownedJobs: OwnedJobs;
  rechecks: JobRechecks;
}

export function createUsers(options: UsersOptions): Users {
  const { store, passwords, isSignupOpen, newUserGrants, groups, ownedJobs, rechecks } = options;
  const withHash = async ({ username, password, roles }: { username: string; password: string; roles: Role[] }) => ({
    username,
    roles: [...new Set(roles)],
    passwordHash: await passwords.hash(password),
  });

  return {
    async signup(registration, requestId) {
      if (!isSignupOpen) throw new NotAllowed("Sign-up is closed. Ask an administrator for an account.");
      const user = { ...(await withHash({ ...registration, roles: ["user"] })), grants: newUserGrants };
      await store.insert(user, anonymous(requestId));
      return toTokenData(user);
    },

    async setUp(actor, request) {
      authorize(actor, "users.set_up");
      const user = await withHash(request);
      if (actor.kind === "admin") await store.insert(user, actor);
      else if (!(await store.insertFirst(user, actor))) throw new NotAllowed();
      return toTokenData(user);
    },

    async create(actor, request) {
      authorize(actor, "users.create");
      const user = await withHash(request);
      await store.insert(user, actor);
      return toTokenData(user);
    },

    async list(actor, page) {
      authorize(actor, "users.list");
      return (await store.list(page)).map(toTokenData);
    },

    me: ({ name, roles, grants }) => toTokenData({ username: name, roles, grants }),

    async read(actor, username) {
      authorizeAccount(actor, "users.read", username);
      return toTokenData((await store.find(username)) ?? notFound());
    },

    async update(actor, username, { password, roles }) {
      authorizeAccount(actor, "users.update", username);
      if (roles) authorize(actor, "users.change_roles");
      if (!password && !roles) return toTokenData((await store.find(username)) ?? notFound());
      const passwordHash = password ? await passwords.hash(password) : undefined;
      const changes = { passwordHash, roles: roles ? [...new Set(roles)] : undefined };
      const user = await store.update(username, changes, actor);
      rechecks.recheckJobsOf({ ownerId: user.id });
      return toTokenData(user);
    },

    async delete(actor, username) {
      authorizeAccount(actor, "users.delete", username);
      ownedJobs.closeStreams(await store.delete(username, actor, ownedJobs.end));
    },

    async readGrants(actor, username) {
      authorizeAccount(actor, "users.read_grants", username);
      const { grants } = (await store.find(username)) ?? notFound();
      return { grants };
    },

    async changeGrants(actor, username, { grants }) {
      authorizeAccount(actor, "users.change_grants", username);
      await checkGrants(groups, grants);
      const user = await store.update(username, { grants }, actor);
      rechecks.recheckJobsOf({ ownerId: user.id });
      return { grants: user.grants };
    },
  };
}

function notFound(): never {
  throw new NotFound("User");
}

interface UserView {
  username: string;
  roles: readonly Role[];
  grants?: Parameters<typeof scopesOfUser>[1];
}

const toTokenData = ({ username, roles, grants }: UserView): TokenData => ({
  username,
  roles: roles.join(","),
  scopes: scopesOfUser(roles, grants),
});
