import { href } from "../../app/router.ts";
import { Empty } from "../../components/states.tsx";

/** Before there is anything to look at. */
export function NewNetwork() {
  return (
    <div class="card">
      <Empty title="No access points yet">
        <p>
          <a class="button primary" href={href(["emulator"])}>
            Start some emulated ones
          </a>
        </p>
        <p>
          Or connect a machine of yours: the reference agent (<code>npm run agent</code>) reports its load and network
          counters, and shows how an agent of your own would.
        </p>
      </Empty>
    </div>
  );
}
