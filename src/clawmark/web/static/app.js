// The page works without this file. It adds keys, search as you type and a quiet line for changes.
"use strict";

const page = {
  main: document.getElementById("main"),
  live: document.getElementById("live"),
  keys: document.getElementById("keys"),
};

// Keys: `on("e", handler)` adds one for a view; handlers get the current item, if there is one.
const keyHandlers = new Map();
function on(key, handler) {
  keyHandlers.set(key, handler);
}

function items() {
  return [...document.querySelectorAll("[data-item]")];
}

function current() {
  return document.querySelector("[data-item].current");
}

function select(item) {
  current()?.classList.remove("current");
  if (!item) return;
  item.classList.add("current");
  item.scrollIntoView({ block: "nearest" });
}

function move(step) {
  const all = items();
  const place = all.indexOf(current());
  const next = place < 0 ? (step > 0 ? 0 : all.length - 1) : place + step;
  select(all[Math.max(0, Math.min(all.length - 1, next))]);
}

function isTyping(target) {
  return target.closest("input, textarea, select, [contenteditable]") !== null;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTyping(event.target)) {
    if (event.key === "Escape") {
      event.target.blur();
      event.preventDefault(); // Chromium would empty a search field
    }
    if (event.key === "ArrowDown" && event.target.id === "q") {
      event.target.blur();
      move(1);
      event.preventDefault();
    }
    return;
  }
  if (document.querySelector("dialog[open]")) return;
  const handler = keyHandlers.get(event.key);
  if (handler && handler(current(), event) !== false) event.preventDefault();
});

on("j", () => move(1));
on("k", () => move(-1));
on("Enter", (item, event) => {
  if (event.target.closest("a, button, summary")) return false;
  const target = item?.dataset.open ?? item?.querySelector("a")?.href;
  if (!target) return false;
  location.href = target;
});
on("/", () => {
  const field = document.getElementById("q");
  if (!field) location.href = "/search";
  field?.focus();
  field?.select();
});
on("?", () => page.keys?.showModal());

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-action]");
  if (button?.dataset.action === "keys") page.keys?.showModal();
  if (button?.dataset.action === "reload") location.reload();
});
for (const button of document.querySelectorAll("button.keys")) button.hidden = false;

// A form that is posted by a key or a script carries the token of the page.
function post(address, fields) {
  const body = new URLSearchParams(fields);
  body.set("form_token", document.querySelector("meta[name=form-token]").content);
  return fetch(address, { method: "POST", body });
}

// Search as you type: each key is answered from the index as it is, and when typing stops, once more
// after a look at the disk. The newest answer wins; an older one that arrives later is dropped.
const searchForm = document.querySelector("form[data-search]");
if (searchForm) {
  const results = document.getElementById("results");
  const pause = 400;
  const query = () => new URLSearchParams([...new FormData(searchForm)].filter(([, value]) => value)).toString();
  let asked = query();
  let running = null;
  let timer = 0;

  async function show(wanted, more) {
    running?.abort();
    running = new AbortController();
    try {
      const answer = await fetch(`/search?${wanted}&part=results${more}`, { signal: running.signal });
      const html = await answer.text();
      if (wanted !== asked) return;
      if (!answer.ok) {
        const problem = new DOMParser().parseFromString(html, "text/html").querySelector("main");
        results.replaceChildren(...(problem ? problem.childNodes : [html]));
      } else {
        results.innerHTML = html;
      }
      history.replaceState(null, "", wanted ? `/search?${wanted}` : "/search");
      performance.mark("clawmark:results");
    } catch (error) {
      if (error.name !== "AbortError") say("The server does not answer: is it still running?");
    }
  }

  function search() {
    const wanted = query();
    if (wanted === asked) return;
    asked = wanted;
    clearTimeout(timer);
    timer = setTimeout(() => !current() && show(wanted, ""), pause);
    return show(wanted, "&quick=1");
  }
  searchForm.addEventListener("input", search);

  // A page that was answered from the index as it was: look again, and say so if that changes hits.
  async function check(wanted) {
    const answer = await fetch(`/search?${wanted}&part=results`).catch(() => null);
    if (!answer?.ok || wanted !== asked) return;
    const fresh = document.createElement("template");
    fresh.innerHTML = await answer.text();
    const hits = (root) => root.querySelector(".hits")?.textContent;
    if (wanted !== asked) return;
    if (hits(fresh.content) !== hits(results)) say("Files have changed, and with them these hits:", "reload");
    else results.querySelector(".summary")?.replaceWith(fresh.content.querySelector(".summary"));
  }
  if ("askAgain" in results.dataset) timer = setTimeout(() => check(asked), pause);
  on("e", async (item) => {
    if (!searchForm.elements.explain) return;
    searchForm.elements.explain.checked = !searchForm.elements.explain.checked;
    await search();
    if (item) select(items().find((one) => one.dataset.open === item.dataset.open));
  });
  on("w", () => {
    const link = document.querySelector("a[data-why-not]");
    if (!link) return false;
    const chosen = current()?.querySelector(".citation")?.textContent;
    location.href = chosen ? `${link.href}&target=${encodeURIComponent(chosen)}` : link.href;
  });
}

// Changes are announced in one line; what is being read does not move.
function say(text, action) {
  page.live.replaceChildren(text);
  if (action) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.action = action;
    button.textContent = "show";
    page.live.append(" ", button);
  }
  page.live.hidden = false;
}

if (window.EventSource && page.live && "events" in page.live.dataset) {
  const events = new EventSource("/events");
  let changed = 0;
  events.addEventListener("indexing", (event) => say(JSON.parse(event.data).message));
  events.addEventListener("indexed", (event) => {
    changed += JSON.parse(event.data).files;
    if (changed) say(`${changed} ${changed === 1 ? "file has" : "files have"} changed:`, "reload");
    else page.live.hidden = true;
  });
  events.addEventListener("failed", (event) => say(JSON.parse(event.data).message));
}

// Timeline, file and review: `data-key` is the key of a link, a button or a summary. The one in the
// current item is used, otherwise the first one of the page.
for (const key of new Set([...document.querySelectorAll("[data-key]")].map((one) => one.dataset.key))) {
  on(key, (item) => {
    const wanted = `[data-key="${key}"]`;
    const target = item?.querySelector(wanted) ?? document.querySelector(wanted);
    if (!target) return false;
    target.click();
    if (target.matches("summary")) target.parentElement.querySelector("textarea")?.focus();
  });
}
const firstItem = document.querySelector("[data-first-item]");
if (firstItem) select(firstItem);

// Edits: a form is sent once; a text that is not saved is not lost without a question.
let isSent = false;
document.addEventListener("submit", (event) => {
  if (event.target.method !== "post") return;
  if (isSent) event.preventDefault();
  isSent = true;
});
window.addEventListener("pageshow", () => { isSent = false; });
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.target.closest("form.edit")?.requestSubmit();
});
window.addEventListener("beforeunload", (event) => {
  const fields = [...document.querySelectorAll("form.edit textarea")];
  if (!isSent && fields.some((field) => field.value !== field.defaultValue)) event.preventDefault();
});
const editedLine = Number(document.querySelector("form.edit[data-line]")?.dataset.line ?? 0);
if (editedLine) {
  const field = document.getElementById("text");
  const before = field.value.split("\n").slice(0, editedLine - 1).join("\n").length + (editedLine > 1);
  field.focus();
  field.setSelectionRange(before, before);
  field.scrollTop = (editedLine - 5) * parseFloat(getComputedStyle(field).lineHeight);
}

// Health: the checks take seconds, so that the page shows its state first.
async function load(section) {
  const link = section.querySelector("a");
  const wait = document.createElement("span");
  wait.textContent = "The checks are running.";
  link?.replaceWith(wait);
  try {
    const answer = await fetch(section.dataset.load);
    const html = await answer.text();
    if (answer.ok) section.innerHTML = html;
    else wait.textContent = new DOMParser().parseFromString(html, "text/html").querySelector("main")?.innerText ?? "The checks failed.";
  } catch {
    wait.replaceWith(link);
  }
}
for (const section of document.querySelectorAll("[data-load]")) load(section);

// A file: an address may name several lines, a line that another part of the file has, or one inside
// a block. Lines that are named are marked; the browser itself only knows single ones.
function showLine() {
  const rows = document.querySelector(".rows");
  const hash = /^#L([0-9]{1,9})(?:-L?([0-9]{1,9}))?$/.exec(location.hash);
  if (!rows || !hash) return;
  const [from, to] = [Number(hash[1]), Number(hash[2] ?? hash[1])];
  const lines = [...rows.querySelectorAll("[id^=L]")].map((line) => [Number(line.id.slice(1)), line]);
  for (const [number, line] of lines) line.classList.toggle("named", number >= from && number <= to);
  if (document.getElementById(location.hash.slice(1))) return;
  const { first, last, total } = rows.dataset;
  const start = lines.find(([number]) => number >= from && number <= to)?.[1];
  if (start) {
    start.scrollIntoView({ block: "start" });
  } else if (from >= Number(first) && from <= Number(last)) {
    lines.filter(([number]) => number < from).at(-1)?.[1].scrollIntoView({ block: "center" });
  } else if (from <= Number(total) && !location.search.includes(`line=${from}`)) {
    location.replace(`${location.pathname}?line=${from}${location.hash}`);
  }
}
showLine();
window.addEventListener("hashchange", showLine);
