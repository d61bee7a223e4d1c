// Requests to the service. A token is kept in this tab's session storage and sent only as a header.

const KEY = "suture-token";
// The wait before a stream of events is requested again; it doubles up to the maximum. By judgement, not measured.
const RETRY_MS = 1000;
const MAX_RETRY_MS = 15_000;

export class Problem extends Error {
  constructor(status, plain) {
    super(plain.detail || plain.title || `the server responded with status ${status}`);
    this.status = status;
    this.remedy = plain.remedy || "";
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
    throw new Problem(0, { detail: "the server does not respond", remedy: "Is `suture serve` still running? This page will retry." });
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

export const get = async (path, signal) => (await request(path, { signal })).json();
export const text = async (path, signal) => (await request(path, { signal })).text();

export async function post(path, plain) {
  const body = plain === undefined ? undefined : JSON.stringify(plain);
  const headers = body === undefined ? {} : { "Content-Type": "application/json" };
  return (await request(path, { method: "POST", body, headers })).json();
}

export async function send(path, file) {
  const headers = { "Content-Type": "application/octet-stream" };
  return (await request(path, { method: "POST", body: file, headers })).json();
}

// Follows a run's events, each once, what they mean in short, and the reply that a model is writing. Uses fetch, because EventSource cannot send a token.
// After an interruption it continues after the last received event, by `Last-Event-ID`.
export async function follow(run, { signal, onevent, onstory, onreply, onbreak }) {
  let last = null;
  let wait = RETRY_MS;
  while (!signal.aborted) {
    try {
      const headers = last === null ? {} : { "Last-Event-ID": String(last) };
      const answer = await request(`/v1/runs/${run}/events?text=true`, { signal, headers });
      if (answer.status === 204) return;
      onbreak(null);
      for await (const event of events(answer.body)) {
        wait = RETRY_MS;
        if (event.name === "end") return;
        if (event.name === "reply") { onreply(event.data); continue; }
        if (event.name === "story") { onstory(event.data); continue; }
        last = Number(event.id);
        onevent(event.data);
      }
    } catch (fault) {
      // Trying again cannot help if the token is refused or the run does not exist.
      if (signal.aborted || fault.status === 401 || fault.status === 403 || fault.status === 404) throw fault;
      onbreak(fault);
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
    wait = Math.min(2 * wait, MAX_RETRY_MS);
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
