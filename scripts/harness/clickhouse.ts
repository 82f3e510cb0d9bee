import { ClickHouseLogLevel, createClient } from "@clickhouse/client-web";
import type { Product } from "./product.ts";

/** The store of a product that runs here, with patience for questions over all of it. */
export const clickhouseOf = ({ urls }: Pick<Product, "urls">) =>
  createClient({
    url: urls.clickhouse ?? "",
    database: "controller",
    request_timeout: 600_000,
    // It warns of so long a time, for the sake of what may stand in between; here nothing does.
    log: { level: ClickHouseLogLevel.OFF },
  });

export type ClickHouse = ReturnType<typeof clickhouseOf>;
