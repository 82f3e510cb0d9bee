import type { PageProps } from "../router.ts";

export function Overview({ place }: PageProps) {
  return <h1>{place.path.join(" / ")}</h1>;
}
