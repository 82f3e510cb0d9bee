import type { PageProps } from "../router.ts";

export function Emulator({ place }: PageProps) {
  return <h1>{place.path.join(" / ")}</h1>;
}
