/**
 * Returns a record's own value. For names from access points, apps or the address: an inherited name such as "constructor" returns
 * undefined.
 */
export const own = <V>(record: Readonly<Record<string, V>>, name: string): V | undefined =>
  Object.hasOwn(record, name) ? record[name] : undefined;
