/** How messages leave the service: through Cloudflare's e-mail binding or, on one's own machine, by POST to a mail service. */

export interface Message {
  to: string;
  subject: string;
  text: string;
  html: string;
}

export type SendMail = (message: Message) => Promise<void>;

export interface MailOptions {
  from: string | undefined;
  /** Takes each message as JSON; wins over the binding. */
  url: string | undefined;
  binding: SendEmail | undefined;
}

const TIMEOUT_MS = 10_000;

/** The way out, or what is missing for there to be one. */
export function createMailer({ from, url, binding }: MailOptions): SendMail | { missing: string } {
  if (from === undefined) return { missing: "The setting MAIL_FROM is missing." };
  if (url !== undefined) {
    return async (message) => {
      const response = await fetch(url, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ from, ...message }),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      if (!response.ok) throw new Error(`The mail service answered ${response.status}`);
    };
  }
  if (binding !== undefined) {
    return async (message) => {
      await binding.send({ from, ...message });
    };
  }
  return { missing: "There is neither an EMAIL binding nor the setting MAIL_URL." };
}
