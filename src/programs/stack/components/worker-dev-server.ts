/**
 * `wrangler dev` without its inspector: worker-dev-server.ts <configuration> <env file> <dashboard> <objects> <host> <port>
 * The inspector runs any code in the Worker, which knows every secret, for every program on this machine and for every page that a
 * browser there shows. wrangler's command line cannot turn it off.
 */
import { unstable_startWorker } from "wrangler";

const [config = "", envFile = "", assets = "", persist = "", hostname = "", port] = process.argv.slice(2);

await unstable_startWorker({
  config,
  envFiles: [envFile],
  assets,
  dev: { server: { hostname, port: Number(port) }, persist, inspector: false, watch: true, remote: false },
});
