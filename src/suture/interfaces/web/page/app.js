// The page: which address shows what, and the token where the service asks for one.

import { get, token } from "./api.js";
import { el, fault, field, fill, note, say } from "./dom.js";
import { benchmarkPage, benchmarksPage, totalsPage } from "./figures.js";
import { comparePage, historyPage } from "./history.js";
import { runPage } from "./run.js";
import { startPage } from "./start.js";

const RUN = "([0-9]{8}-[0-9]{9}-[0-9a-f]{6})";
const PAGES = [
  [/^\/$/, historyPage, "Runs"],
  [/^\/new$/, startPage, "New run"],
  [/^\/totals$/, totalsPage, "Totals"],
  [/^\/benchmarks$/, benchmarksPage, "Benchmarks"],
  [/^\/benchmarks\/([\w.-]{1,100})$/, benchmarkPage, "Benchmark"],
  [new RegExp(`^/compare/${RUN}/${RUN}$`), comparePage, "Two runs"],
  [new RegExp(`^/runs/${RUN}(?:/([a-z]+))?(?:/([0-9a-z]+))?/?$`), runPage, "Run"],
];

const main = document.getElementById("main");
let leaving = new AbortController();

async function show() {
  const path = location.hash.slice(1) || "/"; // no address of ours has anything to decode
  if (path === "main") return main.focus();
  const found = PAGES.map(([pattern, page, title]) => [pattern.exec(path), page, title]).find(([match]) => match);
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  for (const link of document.querySelectorAll("nav[aria-label=Pages] a")) {
    if (link.getAttribute("href").slice(1) === path) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!found) return fill(main, el("h1", {}, "Nothing here"), note("There is no such page."), el("a", { href: "#/" }, "All runs"));
  const [match, page, title] = found;
  document.title = `${title} - Suture`;
  fill(main, el("h1", {}, title), note("Loading ...", "loading"));
  try {
    const caller = await get("/v1/caller", signal);
    fill(document.getElementById("who"), caller.needs_token ? `${caller.name} (${caller.role})` : "this machine");
    const view = el("div", {});
    await page({ view, signal, caller, parts: match.slice(1), title: (text) => { document.title = `${text} - Suture`; } });
    if (signal.aborted) return undefined;
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

// Whoever has no token, or one that is not known, is asked for it; it is forgotten with the tab.
function askForToken(problem) {
  const input = el("input", { type: "password", autocomplete: "off", required: true, spellcheck: "false" });
  const enter = (event) => {
    event.preventDefault();
    token.set(input.value.trim());
    show();
  };
  fill(main,
    el("h1", { tabindex: "-1" }, "A token is needed"),
    note(token.get() ? problem.message : "This server knows its callers by a token.", token.get() ? "error" : "hint"),
    el("form", { onsubmit: enter, class: "panel" },
      field("Token", input, "From `suture serve token add`. It is kept in this tab alone, until the tab is closed."),
      el("button", { type: "submit" }, "Go on")));
  input.focus();
  say("A token is needed");
}

window.addEventListener("suture-token-needed", (event) => { leaving.abort(); askForToken(event.detail); });
window.addEventListener("hashchange", show);
show();
