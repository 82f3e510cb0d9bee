import { describe, expect, it } from "vitest";
import {
  describeAction,
  detailText,
  parseIdentifier,
} from "../../../src/dashboard/features/administration/audit/audit-text.ts";

describe("the text of an audit entry", () => {
  it("describes the action", () => {
    expect(describeAction("change password and change roles")).toBe("Changed the password and changed the roles");
    expect(describeAction("send command")).toBe("Sent a command");
    expect(describeAction("emulation cancelled")).toBe("Stopped an emulation");
  });

  it.each([
    [null, ""],
    [{}, ""],
    [{ command: "reboot", job_number: "x", outcome: "queued" }, "“reboot”"],
    [{ command: "reboot", outcome: "refused", reason: "Too soon" }, "“reboot” – refused: Too soon"],
    [
      { command: "reboot", outcome: "refused", agents: 3, refused: [{ ap_id: "a" }, { ap_id: "b" }] },
      "“reboot” – refused – a, b and 1 more",
    ],
    [{ access_points: "3 WiFi, 2 LiFi", outcome: "done" }, "3 WiFi, 2 LiFi"],
    [{ access_points: 5, outcome: "removed" }, "5 access points"],
    [{ command: 1, access_points: [], refused: "x" }, ""],
  ])("shows the detail %j as “%s”", (detail, text) => {
    expect(detailText(detail)).toBe(text);
  });

  it("names the actor and its kind", () => {
    expect(parseIdentifier("agent:roof-1")).toEqual({ name: "roof-1", kind: "access point" });
    expect(parseIdentifier("service")).toEqual({ name: "service", kind: "the service" });
    expect(parseIdentifier("anyone")).toEqual({ name: "anyone", kind: "not signed in" });
    expect(parseIdentifier("agents")).toEqual({ name: "agents", kind: "several access points" });
  });
});
