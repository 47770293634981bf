// The status page: all that status.json says, asked for again while the page is
// looked at.
import { json } from "./api.js";
import { make } from "./card.js";
import { columns, figure, title, word } from "./figures.js";

const every = 2000;
const sections = document.getElementById("sections"), state = document.getElementById("state");

let cells = new Map(); // the element of each value, by its path
let timer = 0;

function cell(path, className) {
  const td = make("td", className), value = make("data");
  value.dataset.key = path;
  cells.set(path, value);
  td.append(value);
  return td;
}

function heading(text, scope) {
  const th = make("th", "", text);
  th.scope = scope;
  return th;
}

function row(name, ...tds) {
  const tr = make("tr");
  tr.append(heading(name, "row"), ...tds);
  return tr;
}

function grid(name, section, across) {
  const table = make("table"), head = make("thead"), body = make("tbody"), top = make("tr");
  top.append(make("th"), ...across.map((c) => heading(c, "col")));
  head.append(top);
  // What only some have (why a GPU is off) is a row too.
  for (const key of new Set(across.flatMap((c) => Object.keys(section[c])))) {
    body.append(row(word(name, key), ...across.map((c) => (key in section[c] ? cell(`${name}.${c}.${key}`) : make("td")))));
  }
  table.append(head, body);
  return table;
}

function list(name, section) {
  const keys = Object.keys(section);
  if (!keys.length) return make("p", "none", "none");
  const table = make("table"), body = make("tbody");
  for (const key of keys) body.append(row(own(name) ? key : word(name, key), cell(`${name}.${key}`)));
  table.append(body);
  return table;
}

// own says that a section's keys are words of their own: statuses and reasons.
const own = (name) => name === "requests_by_status" || name === "unsupported" || name.startsWith("devices_");

// build lays out the lists in columns, and below them what is a table.
function build(status) {
  cells = new Map();
  const lists = make("div", "lists"), tables = [];
  for (const [name, section] of Object.entries(status)) {
    const across = columns(name, section), box = make("section");
    box.append(make("h2", "", title(name)), across ? grid(name, section, across) : list(name, section));
    if (across) tables.push(box);
    else lists.append(box);
  }
  sections.replaceChildren(lists, ...tables);
}

/** values walks all that has no parts of its own. */
function* values(node, path) {
  for (const [key, value] of Object.entries(node)) {
    const at = path ? `${path}.${key}` : key;
    if (value !== null && typeof value === "object") yield* values(value, at);
    else yield [at, key, value];
  }
}

function show(status) {
  const all = [...values(status, "")];
  if (all.length !== cells.size || all.some(([path]) => !cells.has(path))) build(status);
  for (const [path, key, value] of all) {
    const at = cells.get(path);
    at.value = String(value);
    at.textContent = figure(key, value);
  }
}

async function refresh() {
  clearTimeout(timer);
  try {
    show(await json("status.json"));
    say("", `As of ${new Date().toLocaleTimeString()}`);
  } catch (err) {
    say("bad", `${err.message} What stands below is old.`);
  }
  if (!document.hidden) timer = setTimeout(refresh, every);
}

// say is heard by screen readers when something is wrong, not every two seconds.
function say(className, text) {
  state.ariaLive = className ? "polite" : "off";
  state.className = className;
  state.textContent = text;
  sections.classList.toggle("stale", className === "bad");
}

document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : refresh()));
refresh();
