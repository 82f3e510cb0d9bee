/**
 * Runs `wrangler dev` without its inspector, which wrangler's command line cannot disable. Through the inspector, every program on this
 * machine and every web page in a browser could run code in the Worker, which knows all secrets.
 *
 * Usage: worker-dev-server.ts <configuration> <env file> <dashboard folder> <objects folder> <host> <port>
 */
import { unstable_startWorker } from "wrangler";

const [config = "", envFile = "", assets = "", persist = "", hostname = "", port] = process.argv.slice(2);

await unstable_startWorker({
  config,
  envFiles: [envFile],
  assets,
  dev: { server: { hostname, port: Number(port) }, persist, inspector: false, watch: true, remote: false },
});
