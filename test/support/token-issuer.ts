import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { brokerComponent } from "../../src/programs/stack/components/broker-process.ts";
import { anyFreePort } from "../../src/programs/stack/ports.ts";

const ISSUER = "controller";

/** Signs tokens as the controller does, and publishes the key with which a broker verifies them. */
export class TokenIssuer {
  /** While false, it responds with 503 instead of the key. */
  isAvailable = true;
  /** Requests for the key that it responded to with 503. */
  rejections = 0;
  readonly #keyServer: Server;
  readonly #privateKey: CryptoKey;

  private constructor(privateKey: CryptoKey, jwks: object) {
    this.#privateKey = privateKey;
    this.#keyServer = createServer((_request, response) => {
      if (this.isAvailable) response.end(JSON.stringify(jwks));
      else response.writeHead(503).end(String(++this.rejections));
    });
  }

  static async start(): Promise<TokenIssuer> {
    const { publicKey, privateKey } = await generateKeyPair("ES256");
    const jwks = { keys: [{ ...(await exportJWK(publicKey)), kid: "a", alg: "ES256" }] };
    const issuer = new TokenIssuer(privateKey, jwks);
    await new Promise<void>((resolve) => issuer.#keyServer.listen(0, "127.0.0.1", resolve));
    return issuer;
  }

  /** Returns a token, by default of an agent for the broker. */
  readonly sign = (claims: object, seconds = 60): Promise<string> =>
    new SignJWT({ login_type: "agent", scope: "broker:use", ver: 0, ...claims })
      .setProtectedHeader({ alg: "ES256", kid: "a" })
      .setIssuer(ISSUER)
      .setAudience(ISSUER)
      .setExpirationTime(Math.ceil(Date.now() / 1000) + seconds)
      .sign(this.#privateKey);

  /** Returns a token of an app. */
  readonly signForApp = (name: string): Promise<string> => this.sign({ sub: name, login_type: "third_party_app" });

  /** Returns a broker to start that accepts these tokens, and its ports. */
  async broker(dataDir: string, redisUrl?: string) {
    const [tcpPort, wsPort] = [await anyFreePort(), await anyFreePort()];
    const jwksUrl = `http://127.0.0.1:${(this.#keyServer.address() as AddressInfo).port}/`;
    const options = { dataDir, host: "127.0.0.1", tcpPort, wsPort, jwksUrl, issuer: ISSUER };
    return { component: brokerComponent({ ...options, ...(redisUrl && { redisUrl }) }), tcpPort, wsPort };
  }

  close(): void {
    this.#keyServer.close();
    this.#keyServer.closeAllConnections();
  }
}
