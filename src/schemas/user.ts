import * as z from "zod";
import { Email, Password } from "./primitives.ts";

export const TokenData = z
  .object({
    username: z.string().nullable(),
    roles: z.string().describe("The user's roles, joined with a comma."),
    scopes: z.array(z.string()).describe("What those roles grant."),
  })
  .meta({ id: "TokenData" });
export type TokenData = z.output<typeof TokenData>;

export const UserRegister = z.object({ username: Email, password: Password }).meta({ id: "UserRegister" });
export type UserRegister = z.output<typeof UserRegister>;
