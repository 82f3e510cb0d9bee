import { describe, expect, it } from "vitest";
import { appWith, request } from "../support.ts";

const scriptOf = (page: string): string => /src="\/(assets\/[\w.-]+\.js)"/.exec(page)?.[1] ?? "";

/** A request as the Worker sees it behind Cloudflare or `wrangler dev`. */
const proxied = (clientAcceptEncoding: string): RequestInit => ({
  headers: { "Accept-Encoding": "br, gzip" },
  cf: { clientAcceptEncoding },
});

describe("the dashboard's files", () => {
  it("are a page that loads nothing from elsewhere and nothing inline", async () => {
    const page = await request("/");
    expect(page.status).toBe(200);
    expect(page.headers.get("Content-Type")).toBe("text/html; charset=utf-8");
    // A new build must be seen at once.
    expect(page.headers.get("Cache-Control")).toBe("no-cache");
    const policy = page.headers.get("Content-Security-Policy");
    for (const rule of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'"]) {
      expect(policy).toContain(rule);
    }
    const text = await page.text();
    expect(text).not.toMatch(/https?:\/\/|<style|<script(?![^>]* src=)| style=| on\w+=/);
    expect(scriptOf(text)).not.toBe("");
  });

  it("are kept for ever by browsers, being named by their content, and packed for those that unpack", async () => {
    const path = `/${scriptOf(await (await request("/")).text())}`;
    const plain = await request(path);
    expect(plain.headers.get("Content-Type")).toBe("text/javascript; charset=utf-8");
    expect(plain.headers.get("Cache-Control")).toBe("public, max-age=31536000, immutable");
    expect(plain.headers.get("Vary")).toContain("Accept-Encoding");
    expect(plain.headers.get("Content-Encoding")).toBeNull();
    const packed = await request(path, { headers: { "Accept-Encoding": "gzip, br" } });
    expect(packed.headers.get("Content-Encoding")).toBe("gzip");
  });

  it.each<[string, RequestInit, string | null]>([
    ["asks for gzip", { headers: { "Accept-Encoding": "gzip" } }, "gzip"],
    ["does not say", {}, null],
    ["refuses gzip", { headers: { "Accept-Encoding": "gzip;q=0" } }, null],
    ["asks for something else", { headers: { "Accept-Encoding": "br" } }, null],
    // Cloudflare and wrangler replace the header, and keep what the client sent.
    ["does not say, behind a proxy", proxied(""), null],
    ["refuses gzip, behind a proxy", proxied("gzip;q=0, br"), null],
    ["asks for gzip, behind a proxy", proxied("gzip"), "gzip"],
  ])("are sent in an encoding that the client accepts: it %s", async (_, init, encoding) => {
    for (const path of ["/", `/${scriptOf(await (await request("/")).text())}`]) {
      const answer = await request(path, init);
      expect(answer.status).toBe(200);
      expect(answer.headers.get("Content-Encoding")).toBe(encoding);
      expect(answer.headers.get("Vary")).toContain("Accept-Encoding");
    }
  });

  it.each(["/assets/nothing.js", "/assets/nothing.exe", "/assets/%2e%2e%2findex.html", "/index.html"])(
    "do not hold %s",
    async (path) => {
      expect((await request(path)).status).toBe(404);
    },
  );
});

describe("tiles for the map", () => {
  const TILES = "https://tiles.example.com/{z}/{x}/{y}.png";

  it("are none unless the operator names them", async () => {
    expect(await (await request("/dashboard.json")).json()).toEqual({
      map: { tiles: null, attribution: null },
      sign_up: true,
    });
  });

  it("may come from where the operator says, and from nowhere else", async () => {
    const app = appWith({ MAP_TILES_URL: TILES, MAP_ATTRIBUTION: "© Somebody" });
    const settings = await app.request("/dashboard.json");
    expect(await settings.json()).toMatchObject({ map: { tiles: TILES, attribution: "© Somebody" } });
    expect(settings.headers.get("Content-Security-Policy")).toContain("img-src 'self' https://tiles.example.com;");
  });

  it("must have a place for the tile in their address", () => {
    expect(() => appWith({ MAP_TILES_URL: "https://tiles.example.com/" })).toThrow(
      "The setting MAP_TILES_URL must hold {z}, {x} and {y}.",
    );
  });
});
