// Keeps the banner at the story's place; without this file it says where the story was when the page came.

const EVERY_MS = 1_000;
const banner = document.getElementById("demo-story");
const told = banner.querySelector(".told");

// Parts are replaced inside of the live region, and only where they differ, so that each scene is announced once.
function follow(html) {
  const fresh = new DOMParser().parseFromString(html, "text/html");
  const said = fresh.querySelector(".said");
  if (!said) return;
  const old = told.querySelector(".said");
  if (!old) told.innerHTML = html;
  else if (old.textContent !== said.textContent) old.replaceChildren(...said.childNodes);
  const button = told.querySelector("[value=pause], [value=resume]");
  const other = fresh.querySelector("[value=pause], [value=resume]");
  if (button.value !== other.value) { button.value = other.value; button.textContent = other.textContent; }
}

async function look() {
  if (document.hidden) return;
  const answer = await fetch(banner.dataset.told, { headers: { Accept: "text/html" } });
  if (answer.ok) follow(await answer.text());
}

// The page stays where it is when the story is told what to do.
told.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  await fetch(form.action, { method: "POST", body: new FormData(form, event.submitter), redirect: "manual" });
  setTimeout(look, 200);
});
setInterval(() => look().catch(() => {}), EVERY_MS);
