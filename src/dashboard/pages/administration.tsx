import type { PageProps } from "../router.ts";

export function Administration({ place }: PageProps) {
  return <h1>{place.path.join(" / ")}</h1>;
}
