/** What requests that name places need. The first such request loads it: see `protocols/decoders.ts`. */

export { geocode } from "./geocode.ts";
export { suggestPlaces } from "./suggest.ts";
