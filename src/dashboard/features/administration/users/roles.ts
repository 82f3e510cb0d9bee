import type { TokenData, UserCreate } from "../../../../schemas/accounts/user.ts";

export type Role = UserCreate["roles"][number];

export const ROLES: readonly { value: Role; label: string; hint: string }[] = [
  { value: "user", label: "User", hint: "Sees the network, sends commands and runs emulated access points." },
  { value: "admin", label: "Administrator", hint: "Has all permissions and manages accounts." },
];

/** Returns the roles of a user in a fixed order. The service sends them as a comma-separated text. */
export const rolesOf = ({ roles }: TokenData): Role[] =>
  ROLES.map(({ value }) => value).filter((role) => roles.split(",").includes(role));

/** Returns the names of a user's roles for people. */
export const rolesText = (user: TokenData): string =>
  ROLES.filter(({ value }) => rolesOf(user).includes(value))
    .map(({ label }) => label)
    .join(", ");
