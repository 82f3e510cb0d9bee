/** Types for packages that have none, for as much of them as the programs use. */

declare module "aedes-persistence-level/asyncPersistence.js" {
  import type { Readable } from "node:stream";
  import type { AedesPublishPacket, Client, Subscription } from "aedes";
  import type { ClassicLevel } from "classic-level";

  export default class AsyncLevelPersistence {
    constructor(level: ClassicLevel);
    subscriptionsByTopic(topic: string): Promise<Subscription[]>;
    addSubscriptions(client: Client, subscriptions: Subscription[]): Promise<void>;
    storeRetained(packet: AedesPublishPacket): Promise<void>;
    cleanSubscriptions(client: { id: string }): Promise<void>;
    outgoingStream(client: { id: string }): Readable;
    outgoingEnqueue(subscription: { clientId: string }, packet: AedesPublishPacket): Promise<void>;
    outgoingEnqueueCombi(subscriptions: Subscription[], packet: AedesPublishPacket): Promise<void>;
    outgoingClearMessageId(client: Client, packet: { messageId: number }): Promise<AedesPublishPacket | undefined>;
    outgoingUpdate(client: Client, packet: AedesPublishPacket): Promise<void>;
  }
}

/** In ESM, its CommonJS export is one level deeper: `default.default` is the path of the binary. */
declare module "workerd" {
  const workerd: { default: string };
  export default workerd;
}
