/** The page behind the link of a password-reset message. The token is in the part of the address that browsers keep to themselves. */

export const resetPage = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="referrer" content="no-referrer">
    <title>Set a new password</title>
    <link rel="stylesheet" href="/reset-password/style.css">
    <script src="/reset-password/script.js" defer></script>
  </head>
  <body>
    <main>
      <h1>Set a new password</h1>
      <form>
        <label for="password">New password <small>at least 8 characters</small></label>
        <input id="password" type="password" autocomplete="new-password" minlength="8" maxlength="128" required autofocus>
        <label for="repeat">The same again</label>
        <input id="repeat" type="password" autocomplete="new-password" maxlength="128" required>
        <button>Save</button>
      </form>
      <p role="status" aria-live="polite"></p>
      <noscript><p>This page needs JavaScript.</p></noscript>
    </main>
  </body>
</html>
`;

export const resetScript = `
const form = document.querySelector("form");
const status = document.querySelector("[role=status]");
const [password, repeat] = document.querySelectorAll("input");
const token = location.hash.slice(1);
history.replaceState(null, "", location.pathname);

const say = (text, ended) => {
  status.textContent = text;
  form.hidden = Boolean(ended);
};
if (token === "") say("This link is incomplete. Open the one in the message again, or ask for a new one.", true);

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (password.value !== repeat.value) return say("The two passwords differ.");
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    const response = await fetch("/api/v1/users/reset-password", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token, new_password: password.value }),
    });
    if (response.ok) say("Your new password is set. You can sign in with it now.", true);
    else if (response.status === 400) say("This link has been used already or is too old. Ask for a new one.", true);
    else if (response.status === 429) say("Too many tries. Wait a minute and try again.");
    else say("That did not work. Try again in a moment.");
  } catch {
    say("The service cannot be reached. Try again in a moment.");
  } finally {
    button.disabled = false;
  }
});
`;

export const resetStyle = `
:root { color-scheme: light dark; }
body { margin: 0; display: grid; place-items: center; min-height: 100vh; font: 16px/1.5 system-ui, sans-serif;
  background: light-dark(#f5f7f9, #0f1317); color: light-dark(#1b232d, #e3e8ee); }
main { width: min(24rem, calc(100vw - 3rem)); padding: 1.5rem; border-radius: 8px;
  background: light-dark(#fff, #171c22); border: 1px solid light-dark(#d8dee6, #333b46); }
h1 { margin: 0 0 1rem; font-size: 1.25rem; }
label { display: block; margin-top: 0.75rem; } small { color: light-dark(#566373, #97a3b2); }
input, button { width: 100%; box-sizing: border-box; font: inherit; padding: 0.5rem 0.75rem; border-radius: 6px; }
input { border: 1px solid light-dark(#9aa7b5, #4a5665); background: transparent; color: inherit; }
button { margin-top: 1.25rem; border: 0; background: #0b5cad; color: #fff; cursor: pointer; } button:disabled { opacity: 0.6; }
[hidden] { display: none; }
`;
