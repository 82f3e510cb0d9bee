import { describe, expect, it } from "vitest";
import { Addresses, splitAddresses } from "../../src/lib/addresses.ts";

describe("the addresses of a server's nodes", () => {
  const down = new Set<string>();
  const tried: string[] = [];
  const connect = async (address: string): Promise<string> => {
    tried.push(address);
    if (down.has(address)) throw new Error(`${address} is down`);
    return address;
  };

  it("are separated by commas", () => {
    expect(splitAddresses(" ws://a , ,mqtt://b:1,")).toEqual(["ws://a", "mqtt://b:1"]);
  });

  it("are tried in turn, beginning with the one that worked last", async () => {
    const addresses = new Addresses(["a", "b", "c"]);
    down.add("a");
    expect(await addresses.use(connect)).toBe("b");
    expect(await addresses.use(connect)).toBe("b");
    expect(tried).toEqual(["a", "b", "b"]);
    down.add("b").add("c");
    await expect(addresses.use(connect)).rejects.toThrow("a is down");
    down.delete("a");
    expect(await addresses.use(connect)).toBe("a");
  });
});
