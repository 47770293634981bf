// The gallery: folders and slides of the library, a page at a time.
import * as api from "./api.js";
import { card, folder } from "./card.js";
import { crumbs } from "./crumbs.js";

const pageSize = 100;
const $ = (id) => document.getElementById(id);
const parts = { status: $("status"), folders: $("folders"), slides: $("slides"), more: $("more"), search: $("search") };

let place = { folder: "", search: "" };
let shown = 0, total = 0, asked = null, rescan = 0;

function fromAddress() {
  const q = new URLSearchParams(location.search);
  return { folder: q.get("folder") ?? "", search: q.get("search") ?? "" };
}

function address(p) {
  const q = new URLSearchParams();
  if (p.folder) q.set("folder", p.folder);
  if (p.search) q.set("search", p.search);
  return q.size || [...q].length ? `./?${q}` : "./";
}

// go shows another folder or search from its beginning.
function go(next, how) {
  place = next;
  if (how) history[how](null, "", address(place));
  asked?.abort();
  asked = null;
  clearTimeout(rescan);
  shown = total = 0;
  if (parts.search.value !== place.search) parts.search.value = place.search;
  crumbs($("crumbs"), place, (f) => address({ folder: f, search: "" }));
  document.title = `${place.folder || "Slides"} · Microtome`;
  load(true);
}

async function load(first) {
  if (asked) return;
  const mine = (asked = new AbortController());
  try {
    const page = await api.list({ ...place, offset: first ? 0 : shown, limit: pageSize }, mine.signal);
    if (asked !== mine) return;
    if (first) {
      parts.folders.replaceChildren(...page.folders.map((f) => folder(f, address({ folder: f.path, search: "" }))));
      parts.slides.replaceChildren();
      shown = 0;
    }
    parts.slides.append(...page.slides.map((s) => card(s, place)));
    shown += page.slides.length;
    total = page.slides.length ? page.total : shown;
    say(page);
    if (page.scanning) rescan = setTimeout(refresh, 1500);
  } catch (err) {
    if (err.name === "AbortError") return;
    parts.status.className = "bad";
    parts.status.textContent = err.message;
  } finally {
    if (asked === mine) asked = null;
  }
  if (shown < total && near()) load(false);
}

// refresh is for a library that is still being read: more may have come, but
// whoever has scrolled on keeps the place.
function refresh() {
  if (shown <= pageSize && scrollY === 0 && !parts.slides.contains(document.activeElement)) load(true);
  else rescan = setTimeout(refresh, 1500);
}

function say(page) {
  parts.status.className = "";
  const n = `${total.toLocaleString("en")} ${total === 1 ? "slide" : "slides"}`;
  let text = place.search ? `${n} found for “${place.search}”` : n;
  if (!total && !page.folders.length && !place.search) text = "No slides here";
  if (page.scanning) text += ", still reading the folders…";
  parts.status.textContent = text;
}

function near() {
  return parts.more.getBoundingClientRect().top < innerHeight + 1200;
}

// Plain clicks on folders stay in this page.
document.addEventListener("click", (e) => {
  const a = e.target.closest("a[data-folder]");
  if (!a || e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
  e.preventDefault();
  scrollTo(0, 0);
  go({ folder: a.dataset.folder, search: "" }, "pushState");
});

let typing = 0;
parts.search.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => go({ ...place, search: parts.search.value.trim() }, "replaceState"), 180);
});

// Arrow keys walk the cards; "/" goes to the search.
document.addEventListener("keydown", (e) => {
  if (e.key === "/" && document.activeElement !== parts.search) {
    e.preventDefault();
    parts.search.focus();
    return;
  }
  const at = document.activeElement?.closest?.("#slides > li");
  if (!at || e.ctrlKey || e.metaKey || e.altKey) return;
  const columns = getComputedStyle(parts.slides).gridTemplateColumns.split(" ").length;
  const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[e.key];
  if (!by) return;
  const next = parts.slides.children[[...parts.slides.children].indexOf(at) + by];
  if (!next) return;
  e.preventDefault();
  next.querySelector("a").focus();
});

addEventListener("popstate", () => go(fromAddress()));
new IntersectionObserver(() => { if (shown < total && near()) load(false); }, { rootMargin: "1200px" }).observe(parts.more);
go(fromAddress());
