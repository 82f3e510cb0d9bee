import { html } from "hono/html";
import type { Message } from "./mailer.ts";

export function passwordResetMessage(to: string, link: string, validMinutes: number): Message {
  const subject = "Set a new password";
  const intro = `Someone, probably you, requested a new password for ${to} at the Multi-Access Network Controller.`;
  const action = `Open this link within ${validMinutes} minutes to set it:`;
  const outro =
    "The link works once. Setting a new password signs you out everywhere. If you did not request this, ignore this message: your password stays the same.";
  return {
    to,
    subject,
    text: [intro, action, link, outro].join("\n\n"),
    html: String(html`<!doctype html>
<html lang="en">
  <head><meta charset="utf-8"><title>${subject}</title></head>
  <body style="margin:0;padding:24px;background:#f5f7f9;color:#1b232d;font:16px/1.5 system-ui,sans-serif">
    <div style="max-width:32rem;margin:0 auto;padding:24px;background:#fff;border:1px solid #d8dee6;border-radius:8px">
      <h1 style="margin:0 0 16px;font-size:20px">${subject}</h1>
      <p>${intro}</p>
      <p>${action}</p>
      <p><a href="${link}" style="display:inline-block;padding:10px 18px;border-radius:6px;background:#0b5cad;color:#fff;text-decoration:none">Set a new password</a></p>
      <p style="font-size:14px;overflow-wrap:anywhere">${link}</p>
      <p style="font-size:14px;color:#566373">${outro}</p>
    </div>
  </body>
</html>`),
  };
}
