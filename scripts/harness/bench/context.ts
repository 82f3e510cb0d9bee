import type { Supervisor } from "../../../src/programs/stack/supervisor.ts";
import type { Product } from "../product.ts";
import type { Report } from "./report.ts";

/** What a suite has to work with. */
export interface BenchContext {
  product: Product;
  /** A bare Hono route on the same workerd. */
  bareUrl: string;
  supervisor: Supervisor;
  folder: string;
  /** Of whoever cuts the run off: what a suite starts must not outlive it. */
  signal: AbortSignal;
  seconds: number;
  isQuick: boolean;
  /** Of the history, where told. */
  rows: number | undefined;
  /** Of the crowd, and those with an idle socket, where told. */
  jobs: number | undefined;
  socketsPerJob: number;
  report: Report;
}
