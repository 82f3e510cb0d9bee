/**
 * A record's own value under a name that comes from an access point, an app or the address. Objects answer to some that nobody gave
 * them: "constructor", for one.
 */
export const own = <V>(record: Readonly<Record<string, V>>, name: string): V | undefined =>
  Object.hasOwn(record, name) ? record[name] : undefined;
