// Requests to the service. A token is kept in this tab's session storage and sent only as a header.

import { fill } from "./dom.js";

const KEY = "suture-token";
// The wait before something is read again; it doubles up to the maximum. By judgement, not measured.
const RETRY_MS = 1000;
const MAX_RETRY_MS = 15_000;

// Remedies are written for the command line or for programs, and the page shows only those of these errors, which name what the machine lacks.
const ABOUT_MACHINE = new Set(["ModelAuthError", "ModelUnreachable", "ModelNotFound", "ModelProtocolError", "ModelTimeout", "ModelRateLimited", "SandboxUnavailable", "SandboxBroken", "StorageError", "CodeHostError"]);
// The class of an error -> what can be done about it on this page.
export const ADVICE = {
  BudgetExceeded: "Start it again with a higher limit under Options.",
  NoTestsFound: "Start a new run and say how to test it, with Test command under Options; or choose Write new code.",
  PrerequisiteError: "On the machine where Suture runs, `suture doctor` says what is missing and how to get it.",
  QueueFull: "Try again later.",
  RunBusy: "Wait until its other job has ended.",
};

// For texts that can begin with a name, such as that of a test, whose first letter must stay as it is.
export const withFullStop = (text) => (!text || /[.!?:`]$/.test(text) ? text : `${text}.`);

// Messages of errors begin in lower case, because the command line shows them after a prefix.
export const sentence = (text) => withFullStop(text.replace(/^[a-z]+(?=[\s,;:])/, (word) => word[0].toUpperCase() + word.slice(1)));

export class Problem extends Error {
  constructor(status, plain) {
    super(sentence(plain.detail || plain.title || `the server responded with status ${status}`));
    this.status = status;
    this.field = plain.field;
    this.advice = plain.advice || ADVICE[plain.fault] || (ABOUT_MACHINE.has(plain.fault) ? sentence(plain.remedy || "") : "");
  }
}

export const token = {
  get: () => sessionStorage.getItem(KEY) || "",
  set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

async function request(path, options = {}) {
  const headers = { ...options.headers };
  if (token.get()) headers.Authorization = `Bearer ${token.get()}`;
  let answer;
  try {
    answer = await fetch(path, { ...options, headers, credentials: "omit", redirect: "error" });
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    throw new Problem(0, { detail: "Suture does not respond" });
  }
  if (!answer.ok) {
    let plain = {};
    try { plain = await answer.json(); } catch { /* no problem document: the status is all there is */ }
    const problem = new Problem(answer.status, plain);
    if (answer.status === 401) window.dispatchEvent(new CustomEvent("suture-token-needed", { detail: problem }));
    throw problem;
  }
  return answer;
}

// What is being read again because the server was away. While there is anything, every page says so.
const interrupted = new Set();
const showConnection = () => {
  const sign = document.getElementById("connection");
  fill(sign, interrupted.size ? "Suture does not respond. This page tries again by itself." : "");
  sign.hidden = !interrupted.size;
};

// Reads until the server responds, so that every page recovers by itself. Only reading is repeated, never an action.
async function read(path, signal, as) {
  const reading = {};
  try {
    for (let wait = RETRY_MS; ; wait = Math.min(2 * wait, MAX_RETRY_MS)) {
      try {
        return await (await request(path, { signal }))[as]();
      } catch (fault) {
        if (!isInterruption(fault)) throw fault;
        await pause(reading, wait, signal);
      }
    }
  } finally {
    interrupted.delete(reading);
    showConnection();
  }
}

// A response that breaks off is a TypeError.
const isInterruption = (fault) => fault.status === 0 || fault instanceof TypeError;

// Waits before something is read again, unless the page is left.
async function pause(reading, wait, signal) {
  interrupted.add(reading);
  showConnection();
  await new Promise((resolve) => {
    setTimeout(resolve, wait);
    signal?.addEventListener("abort", resolve, { once: true });
  });
  signal?.throwIfAborted();
}

export const get = (path, signal) => read(path, signal, "json");
export const text = (path, signal) => read(path, signal, "text");

async function act(path, options, receive = (answer) => answer.json()) {
  try {
    return await receive(await request(path, { method: "POST", ...options }));
  } catch (fault) {
    if (!isInterruption(fault)) throw fault;
    throw new Problem(0, { detail: "Suture does not respond, so it is not known whether this was done.", advice: "When Suture is there again, look at what this page shows, and repeat it if it is still needed." });
  }
}

const asJson = (plain) => (plain === undefined ? {} : { body: JSON.stringify(plain), headers: { "Content-Type": "application/json" } });

export const post = (path, plain) => act(path, asJson(plain));

// Judges a change; `onstep` is called with each step when it begins. It is stopped if the page is left.
export function postJudgement(plain, { signal, onstep }) {
  const { body, headers } = asJson(plain);
  return act("/v1/judgements", { body, headers: { ...headers, Accept: "text/event-stream" }, signal }, async (answer) => {
    for await (const event of events(answer.body)) {
      if (event.name === "step") onstep(event.data);
      if (event.name === "report") return event.data;
      if (event.name === "problem") throw new Problem(event.data.status, event.data);
    }
    throw new TypeError("the judgement broke off");
  });
}

export const send = (path, file) => act(path, { body: file, headers: { "Content-Type": "application/octet-stream" } });

// Follows a run's events, each once, what they mean in short, and the reply that a model is writing; `oncurrent` is called when all events until
// now are there. Uses fetch, because EventSource cannot send a token.
// After an interruption it continues after the last received event, by `Last-Event-ID`.
export async function follow(run, { signal, onevent, oncurrent, onstory, onreply, onsearch }) {
  const reading = {};
  let last = null;
  let wait = RETRY_MS;
  try {
    while (!signal.aborted) {
      try {
        const headers = last === null ? {} : { "Last-Event-ID": String(last) };
        const answer = await request(`/v1/runs/${run}/events?text=true`, { signal, headers });
        if (answer.status === 204) return;
        interrupted.delete(reading);
        showConnection();
        for await (const event of events(answer.body)) {
          wait = RETRY_MS;
          if (event.name === "current" || event.name === "end") oncurrent();
          if (event.name === "current") continue;
          if (event.name === "end") return;
          if (event.name === "reply") { onreply(event.data); continue; }
          if (event.name === "search") { onsearch(event.data); continue; }
          if (event.name === "story") { onstory(event.data); continue; }
          last = Number(event.id);
          onevent(event.data);
        }
      } catch (fault) {
        // Trying again cannot help if the token is refused or the run does not exist.
        if (signal.aborted || [401, 403, 404].includes(fault.status)) throw fault;
      }
      await pause(reading, wait, signal);
      wait = Math.min(2 * wait, MAX_RETRY_MS);
    }
  } finally {
    interrupted.delete(reading);
    showConnection();
  }
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += value;
      const parts = rest.split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const fields = {};
        for (const line of part.split("\n")) {
          const at = line.indexOf(": ");
          if (at > 0) fields[line.slice(0, at)] = line.slice(at + 2);
        }
        if (fields.event) yield { name: fields.event, id: fields.id, data: JSON.parse(fields.data) };
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
