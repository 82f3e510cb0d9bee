import type { RareServices, RareServicesOptions } from "./rare-services.ts";

/** Returns services that the first request that needs one of them loads, so that cold starts stay short. */
export function createServicesOnDemand(options: RareServicesOptions): RareServices {
  const load = async (): Promise<RareServices> => (await import("./rare-services.ts")).createRareServices(options);
  return {
    aggregates: { read: async (...request) => await (await load()).aggregates.read(...request) },
    backtests: { run: async (...request) => await (await load()).backtests.run(...request) },
    exports: {
      remoteRead: async (...request) => await (await load()).exports.remoteRead(...request),
      latestValues: async (...request) => await (await load()).exports.latestValues(...request),
      download: async (...request) => await (await load()).exports.download(...request),
    },
  };
}
