// What is asked of the server. Addresses in its answers begin at its root; those
// made here are relative to the page's base.

/** Failure is an answer that is none, with the server's own words. */
export class Failure extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export async function json(url, signal) {
  let answer;
  try {
    answer = await fetch(url, { signal, headers: { Accept: "application/json" } });
  } catch (err) {
    if (err.name === "AbortError") throw err;
    throw new Failure(0, "unreachable", "The server cannot be reached.");
  }
  const body = await answer.json().catch(() => null);
  if (!answer.ok || !body) {
    throw new Failure(answer.status, body?.code ?? "", body?.message ?? `The server answered ${answer.status}.`);
  }
  return body;
}

export function slide(id, signal) {
  return json(`slides/${encodeURIComponent(id)}`, signal);
}

export function list({ folder, search, offset, limit }, signal) {
  const q = new URLSearchParams({ offset, limit });
  if (folder) q.set("folder", folder);
  if (search) q.set("search", search);
  return json(`slides?${q}`, signal);
}
