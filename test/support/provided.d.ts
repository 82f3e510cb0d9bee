import "vitest";

declare module "vitest" {
  /** What the global set-up hands to the tests. */
  export interface ProvidedContext {
    workerEnvironment: Record<string, string>;
    passwordSamples: { password: string; nativeHash: string }[];
  }
}
