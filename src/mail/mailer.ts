/** Sends e-mail through Cloudflare's e-mail binding or, on one machine, with a POST request to a mail service. */

export interface Message {
  to: string;
  subject: string;
  text: string;
  html: string;
}

export type SendMail = (message: Message) => Promise<void>;

export interface MailOptions {
  from: string | undefined;
  /** Receives each message as JSON. Takes precedence over the binding. */
  url: string | undefined;
  binding: SendEmail | undefined;
}

const TIMEOUT_MS = 10_000;

/** Returns a function that sends a message, or the reason why the settings do not allow sending. */
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
      if (!response.ok) throw new Error(`The mail service returned status ${response.status}`);
    };
  }
  if (binding !== undefined) {
    return async (message) => {
      await binding.send({ from, ...message });
    };
  }
  return { missing: "There is neither an EMAIL binding nor the setting MAIL_URL." };
}
