/** The package has no types. */
declare module "aedes-persistence-level" {
  import type { ClassicLevel } from "classic-level";

  export default function aedesPersistenceLevel(level: ClassicLevel): object;
}
