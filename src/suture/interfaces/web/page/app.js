// The page: routing, and the form for the token if the service requires one.

import { get, token } from "./api.js";
import { el, fault, field, fill, note, announce } from "./dom.js";
import { judgePage } from "./judge.js";
import { benchmarkPage, benchmarksPage, totalsPage } from "./cost.js";
import { comparePage, historyPage } from "./history.js";
import { runPage } from "./run.js";
import { startPage } from "./start.js";

const RUN = "([0-9]{8}-[0-9]{9}-[0-9a-f]{6})";
// The pages: the pattern of an address, the page, its title, and the section of the navigation that it belongs to.
const PAGES = [
  [/^\/$/, historyPage, "Runs", "/"],
  [/^\/new$/, startPage, "New run", "/new"],
  [new RegExp(`^/judge(?:/${RUN})?$`), judgePage, "Judge a change", "/judge"],
  [/^\/totals$/, totalsPage, "Totals", "/totals"],
  [/^\/benchmarks$/, benchmarksPage, "Benchmarks", "/totals"],
  [/^\/benchmarks\/([\w.-]{1,100})$/, benchmarkPage, "Benchmark", "/totals"],
  [new RegExp(`^/compare/${RUN}/${RUN}$`), comparePage, "Two runs", "/"],
  [new RegExp(`^/runs/${RUN}(?:/([a-z]+))?(?:/([0-9a-z]+))?/?$`), runPage, "Run", "/"],
];

const main = document.getElementById("main");
let leaving = new AbortController();
let shown = {}; // the page that is shown: `update` shows another part of the same run without drawing all of it again

async function show() {
  const [path, search] = (location.hash.slice(1) || "/").split("?"); // the page's own links contain nothing to decode
  if (path === "main") return main.focus();
  const found = PAGES.map(([pattern, ...page]) => [pattern.exec(path), ...page]).find(([match]) => match);
  if (shown.update && found?.[1] === shown.page && found[0][1] === shown.of) return shown.update(found[0].slice(2));
  leaving.abort();
  leaving = new AbortController();
  shown = {};
  const { signal } = leaving;
  for (const link of document.querySelectorAll("nav[aria-label=Pages] a")) {
    const target = link.getAttribute("href").slice(1);
    if (target === found?.[3]) link.setAttribute("aria-current", target === path ? "page" : "true");
    else link.removeAttribute("aria-current");
  }
  if (!found) return fill(main, el("h1", {}, "Page not found"), note("This page does not exist."), el("a", { href: "#/" }, "All runs"));
  const [match, page, title] = found;
  document.title = `${title} - Suture`;
  fill(main, el("h1", {}, title), note("Loading ...", "loading"));
  try {
    const caller = await get("/v1/caller", signal);
    fill(document.getElementById("who"), caller.needs_token ? `${caller.name} (${caller.role})` : "on this machine, without a login");
    const view = el("div", {});
    const update = await page({ view, signal, caller, parts: match.slice(1), query: new URLSearchParams(search), title: (text) => { document.title = `${text} - Suture`; } });
    if (signal.aborted) return undefined;
    shown = { page, of: match[1], update: typeof update === "function" ? update : null };
    fill(main, view);
    const heading = main.querySelector("h1");
    if (heading) {
      heading.setAttribute("tabindex", "-1");
      heading.focus({ preventScroll: true });
      window.scrollTo(0, 0);
    }
  } catch (error) {
    if (!signal.aborted && error.status !== 401) fill(main, el("h1", {}, title), fault(error), el("p", {}, el("a", { href: "#/" }, "All runs")));
  }
  return undefined;
}

// Asks for a token if there is none or an unknown one; it is forgotten when the tab is closed.
function askForToken(problem) {
  const input = el("input", { type: "password", autocomplete: "off", required: true, spellcheck: "false" });
  const enter = (event) => {
    event.preventDefault();
    token.set(input.value.trim());
    show();
  };
  fill(main,
    el("h1", { tabindex: "-1" }, "Token required"),
    note(token.get() ? problem.message : "This server identifies callers by a token.", token.get() ? "error" : "hint"),
    el("form", { onsubmit: enter, class: "panel" },
      field("Token", input, "Create one with `suture serve token add`. It is kept only in this tab, until the tab is closed."),
      el("button", { type: "submit" }, "Continue")));
  input.focus();
  announce("Token required");
}

window.addEventListener("suture-token-needed", (event) => { leaving.abort(); askForToken(event.detail); });
window.addEventListener("hashchange", show);
show();
