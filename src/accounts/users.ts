import { hashPassword } from "../auth/passwords.ts";
import { type Actor, scopesOf } from "../auth/permissions.ts";
import type { TokenData, UserRegister } from "../schemas/user.ts";
import type { UserStore } from "./user-store.ts";

export interface Users {
  signup(registration: UserRegister): Promise<TokenData>;
  me(actor: Actor): TokenData;
}

export function createUsers(store: UserStore): Users {
  return {
    async signup({ username, password }) {
      const roles = ["user"];
      await store.insert({ username, passwordHash: hashPassword(password), roles });
      return toTokenData(username, roles);
    },

    me: ({ name, roles }) => toTokenData(name, roles),
  };
}

const toTokenData = (username: string, roles: string[]): TokenData => ({
  username,
  roles: roles.join(","),
  scopes: scopesOf(roles),
});
