// Keeps the page current: listens to the server's events and fetches what changed as HTML.
// Without this file the page is complete, only not live.

const POLL_MS = 10_000;
const RETRY_MS = 3_000;
const body = document.body;
const age = document.getElementById("age");
const seconds = document.getElementById("seconds");
const link = document.getElementById("link");
const announcer = document.getElementById("announcer");

let version = Number(body.dataset.version);
let measuredAge = age.dataset.age === "" ? null : Number(age.dataset.age);
let measuredAt = performance.now();
let source = null;
let poller = null;
let failures = 0;

let stale = age.classList.contains("stale");

function showAge() {
  if (measuredAge === null) return;
  seconds.textContent = Math.round(measuredAge + (performance.now() - measuredAt) / 1000);
}

function showLink(state) {
  const shown = state === "live" && stale ? "stale" : state;
  age.className = `age ${shown}`;
  link.textContent = age.dataset[shown];
}

function noteAge(value) {
  measuredAge = value;
  measuredAt = performance.now();
  showAge();
}

async function fetchText(url, headers = {}) {
  const answer = await fetch(url, { headers: { Accept: "text/html", ...headers }, cache: "no-cache" });
  if ([401, 403].includes(answer.status)) location.reload();  // signed out or no longer allowed: the page itself says so
  if (!answer.ok && answer.status !== 503) throw new Error(`${url}: ${answer.status}`);
  if (answer.headers.get("X-Data-Age")) noteAge(Number(answer.headers.get("X-Data-Age")));
  return answer.text();
}

function elementOf(html) {
  const template = document.createElement("template");
  template.innerHTML = html.trim();
  return template.content.firstElementChild;
}

// The focused cell or GPU keeps the focus when it is drawn anew, and what is lit stays so.
function redraw(change) {
  const focused = document.activeElement?.closest?.("a.cell, .gpu a")?.getAttribute("href");
  change();
  if (focused) document.querySelector(`.gpu a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  const pod = lit;
  lit = "";
  light(pod);
}

// A row of a large map has a short name: the beginning of the UUID.
function rowOf(uuid) {
  return document.getElementById(`gpu-${uuid}`) ?? document.getElementById(`gpu-${uuid.slice(0, 12)}`);
}

function fetchGpu(name) {
  return fetchText(body.dataset.gpu.replace(/_$/, encodeURIComponent(name)));
}

// Puts a whole row in the place of a brief one, once, and returns it.
const wholeRows = new WeakMap();
function complete(row) {
  if (!wholeRows.has(row)) wholeRows.set(row, putWhole(row));
  wholeRows.get(row).catch(() => wholeRows.delete(row));
  return wholeRows.get(row);
}
async function putWhole(row) {
  const fresh = elementOf(await fetchGpu(row.id.slice("gpu-".length)));
  if (!row.isConnected) return null;
  const focused = row.contains(document.activeElement);
  redraw(() => row.replaceWith(fresh));
  if (focused) fresh.querySelector("a").focus({ preventScroll: true });
  return fresh;
}

async function refreshContent() {
  const html = await fetchText(location.href, { "X-Fragment": "content" });
  redraw(() => { document.getElementById("content").innerHTML = html; });
  offerCopying();
  tellTimes();
}

async function refreshGpu(uuid, html) {
  const current = rowOf(uuid);
  if (!current) return refreshContent();
  let fresh = elementOf(html ?? await fetchGpu(uuid));
  const whole = !current.classList.contains("brief");
  if (whole && fresh.classList.contains("brief")) fresh = elementOf(await fetchGpu(uuid));
  const focused = !whole && current.contains(document.activeElement);
  redraw(() => current.replaceWith(fresh));
  if (focused) fresh.querySelector("a").focus({ preventScroll: true });
  fresh.classList.add("changed");
}

async function refreshSummary(html) {
  const fresh = elementOf(html ?? await fetchText(body.dataset.summary));
  document.getElementById("summary")?.replaceWith(fresh);
}

async function apply(change) {
  const gpus = change.changed.filter((name) => name.startsWith("GPU-"));
  const parts = change.parts ?? {};
  const whole = change.changed.includes("*") || body.dataset.refresh !== "gpus";
  if (body.dataset.refresh === "never") { version = change.version; return; }
  if (whole && change.changed.length) await refreshContent();
  else if (change.changed.length) await Promise.all([...gpus.map((uuid) => refreshGpu(uuid, parts[uuid])), refreshSummary(parts.summary)]);
  version = change.version;
  if (gpus.length) announcer.textContent = `${announcer.dataset.text} ${gpus.length}`;
}

// Changes are applied one after the other; a failure is followed by a whole refresh.
let queue = Promise.resolve();
function enqueue(change) {
  queue = queue.then(() => apply(change)).catch(() => refreshContent()).catch(() => showLink("lost"));
}

function listen() {
  const parts = document.querySelector(".gpu.brief") ? "brief" : "whole";
  source = new EventSource(`${body.dataset.events}?since=${version}${body.dataset.refresh === "gpus" ? `&parts=${parts}` : ""}`);
  source.addEventListener("change", (event) => enqueue(JSON.parse(event.data)));
  source.addEventListener("age", (event) => {
    const beat = JSON.parse(event.data);
    if (beat.age_s !== null) noteAge(beat.age_s);
    if (beat.stale === stale) return;
    stale = beat.stale;
    showLink("live");
    enqueue({ version, changed: ["*"] });
  });
  source.addEventListener("again", () => { source.close(); listen(); });
  source.addEventListener("open", () => { failures = 0; stopPolling(); showLink("live"); });
  source.addEventListener("error", () => {
    source.close();
    source = null;
    failures += 1;
    if (failures > 1) startPolling();
    setTimeout(() => { if (!document.hidden && !source) listen(); }, RETRY_MS);
  });
}

function startPolling() {
  if (poller) return;
  showLink("polling");
  if (body.dataset.refresh === "never") return;
  const poll = () => refreshContent().catch(() => showLink("lost"));
  poller = setInterval(poll, POLL_MS);
  poll();
}

// Pages of what the worker does: their rows change without a change of the cluster. Whoever is in a
// form of the content is not torn out of it.
const every = Number(body.dataset.every);
if (every) setInterval(() => {
  const busy = document.getElementById("content").contains(document.activeElement?.closest("form, a"));
  if (!document.hidden && !busy) refreshContent().catch(() => showLink("lost"));
}, every * 1000);

function stopPolling() {
  clearInterval(poller);
  poller = null;
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) { source?.close(); source = null; stopPolling(); }
  else if (!source) listen();
});

// Arrow keys move between the cells of a GPU and to the GPUs above and below.
const beginning = (cell) => parseFloat(cell.querySelector("svg").getAttribute("x"));
async function neighbour(cell, key) {
  const row = cell.closest("svg.memory");
  const cells = [...row.querySelectorAll("a.cell")];
  const sideways = { ArrowRight: 1, ArrowLeft: -1 }[key];
  if (sideways) return cells[cells.indexOf(cell) + sideways];
  const rows = [...document.querySelectorAll("svg.memory")];
  const next = rows[rows.indexOf(row) + { ArrowDown: 1, ArrowUp: -1 }[key]];
  const brief = next?.closest(".gpu.brief");
  const there = brief ? await complete(brief) : next;
  return there && [...there.querySelectorAll("a.cell")].findLast((other) => beginning(other) <= beginning(cell));
}
document.addEventListener("keydown", async (event) => {
  const cell = event.target.closest?.("a.cell");
  if (!cell || event.altKey || event.ctrlKey || event.metaKey || !/^Arrow/.test(event.key)) return;
  event.preventDefault();
  (await neighbour(cell, event.key))?.focus();
});
// Pointing at a cell lights up its whole Pod; a brief row is completed as soon as someone stays there.
const DWELL_MS = 60;
let lit = "";
let dwelling = null;
let dwellTimer = null;
function light(pod) {
  if (pod === lit) return;
  lit = pod;
  for (const cell of document.querySelectorAll(".cell.kin")) cell.classList.remove("kin");
  if (!pod) return;
  for (const cell of document.querySelectorAll(`.cell[data-pod="${CSS.escape(pod)}"]`)) cell.classList.add("kin");
}
function dwell(row) {
  if (row === dwelling) return;
  dwelling = row;
  clearTimeout(dwellTimer);
  if (row) dwellTimer = setTimeout(() => complete(row).catch(() => { dwelling = null; }), DWELL_MS);
}
for (const kind of ["pointerover", "focusin"]) {
  document.addEventListener(kind, (event) => {
    light(event.target.closest?.(".cell")?.dataset.pod ?? "");
    dwell(event.target.closest?.(".gpu.brief") ?? null);
  });
}

// Times in the browser's own zone, where that is chosen; what addresses and files say stays UTC.
function tellTimes() {
  if (document.body.dataset.times !== "local") return;
  const write = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "medium", timeStyle: "long" });
  for (const time of document.querySelectorAll("time[datetime]:not([data-utc])")) {
    time.dataset.utc = time.textContent;
    time.title = time.textContent;
    time.textContent = write.format(new Date(time.dateTime));
  }
}
tellTimes();

// A link to memory slices, as #gpu-UUID-4:4, leads to their cell on every page that draws them.
async function arrive() {
  const place = decodeURIComponent(location.hash).match(/^#gpu-(.+)-(\d+):\d+$/);
  if (!place) return;
  const row = rowOf(place[1]);
  if (row?.classList.contains("brief")) await complete(row).catch(() => {});
  const cell = document.querySelector(`a.cell[href$="#${CSS.escape(`${place[1]}-${place[2]}`)}"]`);
  for (const other of document.querySelectorAll("a.cell.sought")) other.classList.remove("sought");
  cell?.classList.add("sought");
  cell?.focus({ preventScroll: true });
  cell?.scrollIntoView({ block: "center" });
}
addEventListener("hashchange", arrive);
arrive();

// "/" goes to the search from anywhere but a field; a choice is taken as soon as it is made.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.closest?.("input, select, textarea")) return;
  const search = document.querySelector("[data-key='/']");
  if (!search) return;
  search.focus();
  event.preventDefault();
});
// Copying needs a secure context; where there is none the button stays away and the text can be selected.
function offerCopying() {
  for (const button of document.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
}
document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  button.textContent = button.dataset.done;
});
offerCopying();
const controls = document.getElementById("controls");
controls?.addEventListener("change", (event) => { if (event.target.matches("select, .slider")) controls.requestSubmit(); });

setInterval(showAge, 1000);
listen();
