import type { TokenData, UserCreate } from "../../../../schemas/user.ts";

export type Role = UserCreate["roles"][number];

export const ROLES: readonly { value: Role; label: string; hint: string }[] = [
  { value: "user", label: "User", hint: "Sees the network, sends commands and runs emulated access points." },
  { value: "admin", label: "Administrator", hint: "May do everything, and manages accounts." },
];

export const rolesOf = ({ roles }: TokenData): Role[] =>
  ROLES.map(({ value }) => value).filter((role) => roles.split(",").includes(role));

export const rolesText = (user: TokenData): string =>
  ROLES.filter(({ value }) => rolesOf(user).includes(value))
    .map(({ label }) => label)
    .join(", ");
