// Keeps pages fresh, sends answers without leaving the page, checks arguments while they are typed, and runs the chat
// box. Without it every page still works. It never makes markup of what others wrote: pieces of pages come escaped from
// the server, and everything else is set as text.

const PART = { "x-gesta-part": "1" };

const said = document.getElementById("said");
/** Tells people who hear the page. */
function say(text) {
  said.textContent = "";
  setTimeout(() => { said.textContent = text; }, 50);
}

// ---- Times: relative ones go on, exact ones are told in the reader's zone.

function lengthOf(ms) {
  const s = Math.floor(ms / 1000);
  if (s < 60) return `${s} s`;
  if (s < 3570) return `${Math.round(s / 60)} min`;
  if (s < 172800) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} d`;
}

function relative(at) {
  const gap = Math.abs(Date.now() - at);
  const ahead = at > Date.now();
  if (gap < 10000) return ahead ? "in a moment" : "just now";
  return ahead ? `in ${lengthOf(gap)}` : `${lengthOf(gap)} ago`;
}

function times(root = document) {
  for (const time of root.querySelectorAll("time[data-at]")) {
    const at = Number(time.dataset.at);
    const text = relative(at);
    if (time.textContent !== text) time.textContent = text;
    time.title = new Date(at).toLocaleString(undefined, { dateStyle: "full", timeStyle: "long" });
  }
}

// ---- Pieces of pages

function parse(html) {
  return new DOMParser().parseFromString(html, "text/html");
}

async function send(form, to = form.action) {
  const body = new URLSearchParams(new FormData(form));
  return fetch(to, { method: "POST", headers: PART, body, credentials: "same-origin" });
}

/** What was wrong, out of a page or a piece of one. */
async function problem(response) {
  const found = parse(await response.text()).querySelector("[data-problem]");
  return found?.textContent.trim() || `The server answered ${response.status}. Load the page again.`;
}

function shown(where, text) {
  if (!where) return say(text);
  where.textContent = text;
  where.hidden = !text;
}

// ---- Answers

/** Somebody is at work in a card: it is not taken away under their hands. */
function inUse(card) {
  return card.contains(document.activeElement) || card.querySelector("details.choice[open]") !== null;
}

function put(card, fresh, focus) {
  card.replaceWith(fresh);
  times(fresh);
  if (focus) fresh.focus();
}

async function answer(form) {
  const card = form.closest(".card");
  const wrong = card.querySelector(".acts > [data-problem]");
  const buttons = [...card.querySelectorAll("button")];
  shown(wrong, "");
  card.dataset.sending = "";
  card.setAttribute("aria-busy", "true");
  buttons.forEach((button) => button.setAttribute("aria-disabled", "true"));
  try {
    const response = await send(form);
    const settled = response.ok || response.status === 409 ? parse(await response.clone().text()).querySelector("[data-settled]") : null;
    if (settled) {
      put(card, document.importNode(settled, true), true);
      say(response.ok ? "Answered." : "Somebody else was first. Your answer was not used.");
      return;
    }
    shown(wrong, await problem(response));
  } catch {
    shown(wrong, "The server cannot be reached. Nothing was sent.");
  } finally {
    delete card.dataset.sending;
    card.removeAttribute("aria-busy");
    buttons.forEach((button) => button.removeAttribute("aria-disabled"));
  }
}

/** A card whose hold is gone: taken away, or turned into what became of it where somebody is at work in it. */
async function gone(card) {
  if (card.dataset.sending !== undefined) return;
  if (!inUse(card)) {
    card.remove();
    return;
  }
  const focus = card.contains(document.activeElement);
  const address = card.querySelector("form[data-answer]")?.getAttribute("action");
  const response = address ? await fetch(address, { headers: PART }) : null;
  const settled = response?.ok ? parse(await response.text()).querySelector("[data-settled]") : null;
  if (!settled || card.dataset.sending !== undefined) return;
  put(card, document.importNode(settled, true), focus);
  say("Somebody else has answered what you were looking at.");
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.matches("[data-answer]")) {
    event.preventDefault();
    if (form.closest(".card").dataset.sending === undefined) answer(form);
  } else if (form.matches("[data-chat]")) {
    event.preventDefault();
    talk(form);
  }
});

// ---- Arguments are checked while they are typed

const waiting = new WeakMap();

async function check(form) {
  const where = form.querySelector("[data-check]");
  const turn = {};
  waiting.set(form, turn);
  await new Promise((done) => setTimeout(done, 200));
  if (waiting.get(form) !== turn) return;
  try {
    const response = await send(form, where.dataset.check);
    if (waiting.get(form) !== turn) return;
    const piece = response.ok ? parse(await response.text()).body.firstElementChild : null;
    if (!piece) return;
    where.replaceChildren(document.importNode(piece, true));
    const wrong = where.querySelector(".wrong")?.textContent;
    for (const field of form.querySelectorAll("[name^='arg.']")) {
      const name = field.name.slice(4);
      field.setAttribute("aria-invalid", String(Boolean(wrong?.includes(name))));
    }
  } catch { /* the answer itself is checked again */ }
}

document.addEventListener("input", (event) => {
  const form = event.target.form;
  if (form?.querySelector("[data-check]")) check(form);
});

// ---- News: the page is fetched again, and what differs is put in its place

function place(node) {
  const active = document.activeElement;
  if (!active || !node.contains(active)) return () => {};
  const id = active.id || active.closest("[id]")?.id;
  const nth = [...(document.getElementById(id)?.querySelectorAll("a, button, summary") ?? [])].indexOf(active);
  return () => {
    const again = document.getElementById(id);
    const target = active.id ? again : again?.querySelectorAll("a, button, summary")[nth];
    (target ?? again ?? document.getElementById("main"))?.focus();
  };
}

function opened(node) {
  return [...node.querySelectorAll("details")].map((it) => it.open);
}

function replace(old, fresh) {
  const back = place(old);
  const open = opened(old);
  const node = document.importNode(fresh, true);
  [...node.querySelectorAll("details")].forEach((it, at) => { if (at in open) it.open = open[at]; });
  old.replaceWith(node);
  times(node);
  copies(node);
  back();
}

/** Brings a list of pieces with names up to date; those that have not changed are not touched. */
function renew(region, fresh) {
  let come = 0;
  let before = null;
  const wanted = new Set([...fresh.children].map((it) => it.id));
  for (const old of [...region.children]) {
    if (wanted.has(old.id) || old.matches("[data-settled]")) continue;
    if (old.matches(".hold")) gone(old); else old.remove();
  }
  for (const piece of fresh.children) {
    const old = piece.id ? document.getElementById(piece.id) : null;
    if (!old || !region.contains(old)) {
      const node = document.importNode(piece, true);
      node.classList.add("fresh");
      if (before) before.after(node); else region.prepend(node);
      times(node);
      copies(node);
      before = node;
      come += 1;
    } else {
      if (old.dataset.version !== piece.dataset.version && !old.matches("[data-settled]") && !(old.matches(".hold") && inUse(old))) {
        replace(old, piece);
      }
      before = document.getElementById(piece.id);
    }
  }
  return come;
}

let fetching = false;
let again = false;

async function refresh() {
  if (fetching) { again = true; return; }
  fetching = true;
  try {
    do {
      again = false;
      const response = await fetch(location.href, { credentials: "same-origin" });
      if (!response.ok) break;
      const page = parse(await response.text());
      for (const region of document.querySelectorAll("[data-region]")) {
        const fresh = page.querySelector(`[data-region="${region.dataset.region}"]`);
        if (!fresh) continue;
        const come = renew(region, fresh);
        if (region.dataset.region === "holds" && come) say(come === 1 ? "A new call waits." : `${come} new calls wait.`);
        if (region.dataset.region === "turns" && come === 0) say("The run has gone on.");
        region.hidden = fresh.hidden;
      }
    } while (again);
  } catch { /* the next news tries again */ } finally {
    fetching = false;
  }
}

const of = document.body.dataset.live;
const live = document.getElementById("live");
let source = null;
let version = null;

// The server said no, and the browser does not ask again by itself: either nobody is signed in any more, or it was busy.
async function refused() {
  source = null;
  const answer = await fetch(location.href, { method: "HEAD" }).catch(() => null);
  if (answer?.status !== 401) { setTimeout(() => { if (!source && !document.hidden) listen(); }, 5000); return; }
  const link = document.createElement("a");
  link.href = location.href;
  link.textContent = "Sign in again";
  document.getElementById("live-word").replaceChildren("Signed out. ", link);
}

function listen() {
  source = new EventSource(`/console/news?${of}`);
  source.addEventListener("open", () => {
    live.hidden = false;
    delete live.dataset.lost;
    document.getElementById("live-word").textContent = "Live";
  });
  source.addEventListener("error", () => {
    live.dataset.lost = "";
    document.getElementById("live-word").textContent = "Connecting…";
    if (source?.readyState === EventSource.CLOSED) refused();
  });
  source.addEventListener("changed", (event) => {
    const news = JSON.parse(event.data);
    const count = document.getElementById("waiting");
    count.hidden = news.waiting === 0;
    count.firstElementChild.textContent = news.count;
    if (news.version !== version && document.querySelector("[data-region]")) refresh();
    version = news.version;
  });
}

if (of) {
  listen();
  // A browser keeps few connections to one place: pages that nobody sees give theirs back.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { source?.close(); source = null; } else if (!source) listen();
  });
}

// ---- Copying

function copies(root = document) {
  for (const button of root.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const word = button.textContent;
  try {
    const response = await fetch(button.dataset.copy);
    if (!response.ok) throw new Error();
    await navigator.clipboard.writeText(await response.text());
    button.textContent = "Copied";
    say("Copied.");
  } catch {
    button.textContent = "Cannot be copied";
    say("Cannot be copied.");
  }
  setTimeout(() => { button.textContent = word; }, 2000);
});

// ---- The chat box

function line(who, look) {
  const item = document.createElement("li");
  item.className = look;
  const name = document.createElement("span");
  name.className = "who";
  name.textContent = who;
  const what = document.createElement("div");
  what.className = "what";
  item.append(name, what);
  document.getElementById("chat").append(item);
  item.scrollIntoView({ block: "nearest" });
  return what;
}

function words(where, text, look = "words") {
  const p = document.createElement("p");
  p.className = look;
  p.textContent = text;
  where.append(p);
  return p;
}

function badge(where, text, tone) {
  const p = document.createElement("p");
  const code = document.createElement("code");
  code.textContent = where.dataset.name ?? "";
  const mark = document.createElement("span");
  mark.className = `badge ${tone}`;
  mark.textContent = text;
  p.append(code, " ", mark);
  where.append(p);
}

/** An object by its names, anything else as it is. */
function json(where, value) {
  if (value && typeof value === "object" && !Array.isArray(value) && Object.keys(value).length) {
    const list = document.createElement("dl");
    list.className = "args";
    for (const [name, one] of Object.entries(value)) {
      const [row, dt, dd, text] = ["div", "dt", "dd", typeof one === "string" ? "span" : "code"].map((it) => document.createElement(it));
      dt.textContent = name;
      text.className = typeof one === "string" ? "text" : "";
      text.textContent = typeof one === "string" ? one : JSON.stringify(one);
      dd.append(text);
      row.append(dt, dd);
      list.append(row);
    }
    where.append(list);
    return;
  }
  const pre = document.createElement("pre");
  pre.tabIndex = 0;
  pre.textContent = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  where.append(pre);
}

const TOLD = {
  "call.requested": (it) => {
    const where = line("model", "call");
    words(where, `calls ${it.name}`);
    json(where, it.arguments);
  },
  "call.decided": (it) => {
    if (it.action === "run" && !it.arguments) return;
    const where = line("policy", "deed");
    where.dataset.name = it.name;
    badge(where, { deny: "denied", defer: "asks a person", run: "runs with other arguments" }[it.action] ?? "no decision", it.action === "deny" ? "bad" : "wait");
    if (it.reason) words(where, it.reason, "why");
  },
  "call.answered": (it) => {
    const where = line("tool", "tool");
    where.dataset.name = it.name;
    badge(where, it.status === "completed" ? "ok" : it.status.replaceAll("_", " "), it.status === "completed" ? "good" : "bad");
    json(where, it.result);
  },
  "hold.opened": (it) => {
    const where = line("gesta", "quiet");
    const p = words(where, "The run waits for a person. ");
    const link = document.createElement("a");
    link.href = `/console/holds/${encodeURIComponent(it.run)}/${encodeURIComponent(it.call)}`;
    link.textContent = "Decide";
    p.append(link);
  },
  "hold.answered": (it) => {
    const where = line("person", "person");
    where.dataset.name = it.name;
    const denied = it.answer.deny !== undefined;
    badge(where, denied ? "denied" : it.answer.approve ? "approved" : "answered", denied ? "bad" : "good");
    if (denied) words(where, it.answer.deny, "why");
  },
  "intervention.sent": (it) => {
    const where = line("gesta", "stepped");
    words(where, `Prompts the model (${it.kind.replaceAll("_", " ")}):`, "");
    words(where, it.prompt ?? "");
  },
  error: (it) => words(line("gesta", "bad"), it.message),
};

/** Reads server-sent events out of an answer. */
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    const blocks = rest.split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const fields = block.split("\n").map((it) => it.split(/:\s?(.*)/s));
      const name = fields.find(([key]) => key === "event")?.[1];
      const data = fields.filter(([key]) => key === "data").map(([, text]) => text).join("\n");
      if (name) yield { name, data: JSON.parse(data) };
    }
  }
}

let before = null;

async function talk(form) {
  const field = form.elements.say;
  const wrong = form.querySelector("[data-problem]");
  const text = field.value.trim();
  if (!text) return;
  shown(wrong, "");
  before?.abort();
  const mine = new AbortController();
  before = mine;
  try {
    const body = new URLSearchParams(new FormData(form));
    const response = await fetch(form.action, { method: "POST", headers: PART, body, signal: mine.signal });
    if (!response.ok) { shown(wrong, await problem(response)); return; }
    document.getElementById("chat-none").hidden = true;
    words(line("user", "user"), text);
    field.value = "";
    field.focus();
    await hear(response);
  } catch (why) {
    if (why.name !== "AbortError") shown(wrong, "The connection broke. The conversation has what happened.");
  }
}

async function hear(response) {
  let writing = null;
  for await (const { name, data } of events(response)) {
    if (name === "trip.started") {
      writing?.classList.remove("writing");
      writing = null;
    } else if (name === "reply.delta") {
      writing ??= words(line("model", "model"), "");
      writing.classList.add("writing");
      writing.textContent = data.offset === 0 ? data.text : writing.textContent + data.text;
    } else if (name === "reply.finished") {
      writing ??= words(line("model", "model"), "");
      writing.textContent = data.text;
      writing.classList.remove("writing");
    } else {
      writing?.classList.remove("writing");
      TOLD[name]?.(data);
    }
  }
  writing?.classList.remove("writing");
}

document.addEventListener("keydown", (event) => {
  const form = event.target.form;
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.target.matches("textarea") && form?.matches("[data-chat]")) {
    event.preventDefault();
    form.requestSubmit();
  }
});

times();
copies();
setInterval(times, 15000);
