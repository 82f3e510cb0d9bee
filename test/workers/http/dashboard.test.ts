import { describe, expect, it } from "vitest";
import { appWith, request } from "../support.ts";

const scriptOf = (page: string): string => /src="\/(assets\/[\w.-]+\.js)"/.exec(page)?.[1] ?? "";

/** Returns a request as the Worker receives it behind Cloudflare or `wrangler dev`. */
const proxied = (clientAcceptEncoding: string): RequestInit => ({
  headers: { "Accept-Encoding": "br, gzip" },
  cf: { clientAcceptEncoding },
});

describe("the files of the dashboard", () => {
  it("include a page that loads no external and no inline resources", async () => {
    const page = await request("/");
    expect(page.status).toBe(200);
    expect(page.headers.get("Content-Type")).toBe("text/html; charset=utf-8");
    // A new build must take effect at once.
    expect(page.headers.get("Cache-Control")).toBe("no-cache");
    const policy = page.headers.get("Content-Security-Policy");
    for (const rule of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'"]) {
      expect(policy).toContain(rule);
    }
    const text = await page.text();
    expect(text).not.toMatch(/https?:\/\/|<style|<script(?![^>]* src=)| style=| on\w+=/);
    expect(scriptOf(text)).not.toBe("");
  });

  it("are cached forever, because a hash of the content names them, and compressed if the client accepts it", async () => {
    const path = `/${scriptOf(await (await request("/")).text())}`;
    const plain = await request(path);
    expect(plain.headers.get("Content-Type")).toBe("text/javascript; charset=utf-8");
    expect(plain.headers.get("Cache-Control")).toBe("public, max-age=31536000, immutable");
    expect(plain.headers.get("Vary")).toContain("Accept-Encoding");
    expect(plain.headers.get("Content-Encoding")).toBeNull();
    const compressed = await request(path, { headers: { "Accept-Encoding": "gzip, br" } });
    expect(compressed.headers.get("Content-Encoding")).toBe("gzip");
  });

  it.each<[string, RequestInit, string | null]>([
    ["accepts gzip", { headers: { "Accept-Encoding": "gzip" } }, "gzip"],
    ["sends no header", {}, null],
    ["refuses gzip", { headers: { "Accept-Encoding": "gzip;q=0" } }, null],
    ["accepts another encoding", { headers: { "Accept-Encoding": "br" } }, null],
    // Cloudflare and wrangler replace the header and keep the original value.
    ["sends no header, behind a proxy", proxied(""), null],
    ["refuses gzip, behind a proxy", proxied("gzip;q=0, br"), null],
    ["accepts gzip, behind a proxy", proxied("gzip"), "gzip"],
  ])("have an encoding that the client accepts, if it %s", async (_, init, encoding) => {
    for (const path of ["/", `/${scriptOf(await (await request("/")).text())}`]) {
      const response = await request(path, init);
      expect(response.status).toBe(200);
      expect(response.headers.get("Content-Encoding")).toBe(encoding);
      expect(response.headers.get("Vary")).toContain("Accept-Encoding");
    }
  });

  it.each(["/assets/nothing.js", "/assets/nothing.exe", "/assets/%2e%2e%2findex.html", "/index.html"])(
    "do not include %s",
    async (path) => {
      expect((await request(path)).status).toBe(404);
    },
  );
});

describe("the tiles of the map", () => {
  const TILES = "https://tiles.example.com/{z}/{x}/{y}.png";

  it("are disabled unless they are configured", async () => {
    expect(await (await request("/dashboard.json")).json()).toEqual({
      map: { tiles: null, attribution: null },
      sign_up: true,
    });
  });

  it("are allowed from the configured origin only", async () => {
    const app = appWith({ MAP_TILES_URL: TILES, MAP_ATTRIBUTION: "© Example" });
    const settings = await app.request("/dashboard.json");
    expect(await settings.json()).toMatchObject({ map: { tiles: TILES, attribution: "© Example" } });
    expect(settings.headers.get("Content-Security-Policy")).toContain("img-src 'self' https://tiles.example.com;");
  });

  it("are rejected if their URL has no placeholders", () => {
    expect(() => appWith({ MAP_TILES_URL: "https://tiles.example.com/" })).toThrow(
      "The setting MAP_TILES_URL must hold {z}, {x} and {y}.",
    );
  });
});
