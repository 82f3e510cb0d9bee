import * as z from "zod";
import { ROLES } from "../../auth/roles.ts";
import { Email, Password } from "../primitives.ts";

export const TokenData = z
  .object({
    username: z.string().nullable(),
    roles: z.string().describe("The user's roles, separated by commas."),
    scopes: z.array(z.string()).describe("Scopes that the roles grant."),
  })
  .meta({ id: "TokenData" });
export type TokenData = z.output<typeof TokenData>;

const Roles = z.array(z.enum(ROLES)).min(1).max(10);

export const UserRegister = z.object({ username: Email, password: Password }).meta({ id: "UserRegister" });
export type UserRegister = z.output<typeof UserRegister>;

export const UserCreate = z.object({ username: Email, password: Password, roles: Roles }).meta({ id: "UserCreate" });
export type UserCreate = z.output<typeof UserCreate>;

export const UserUpdate = z.object({ password: Password.nullish(), roles: Roles.nullish() }).meta({ id: "UserUpdate" });
export type UserUpdate = z.output<typeof UserUpdate>;

export const UserPath = z.object({
  username: z.string().transform((name) => name.trim().toLowerCase()),
});

export const PasswordRecoveryRequest = z.object({ username: Email }).meta({ id: "PasswordRecoveryRequest" });

export const PasswordReset = z
  .object({ token: z.string().describe("Reset token from the e-mail."), new_password: Password })
  .meta({ id: "PasswordReset" });
export type PasswordReset = z.output<typeof PasswordReset>;
