// One slide or folder of the gallery.
import * as api from "./api.js";
import { bytes } from "./format.js";

export function make(tag, className, text) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (text !== undefined) e.textContent = text;
  return e;
}

export function folder(f, href) {
  const li = make("li"), a = make("a", "", f.name);
  a.href = href;
  a.dataset.folder = f.path;
  li.append(a);
  return li;
}

/** card shows a slide's thumbnail, or why there is none. */
export function card(s, place) {
  const li = make("li"), a = make("a", "card"), picture = make("span", "picture"), words = make("span", "words");
  a.href = s.view;
  words.append(make("span", "name", s.name));
  const cut = s.id.lastIndexOf("/");
  if (place.search && cut > 0) words.append(make("span", "meta", s.id.slice(0, cut)));
  words.append(make("span", "meta", `${bytes(s.bytes)} · ${s.modified.slice(0, 10)}`));
  a.append(picture, words);
  li.append(a);
  if (s.error) fail(a, picture, words, s.error);
  else thumbnail(s, a, picture, words);
  return li;
}

function thumbnail(s, a, picture, words) {
  const img = make("img");
  img.alt = "";
  img.loading = "lazy";
  img.decoding = "async";
  img.addEventListener("load", () => describe(s, words), { once: true });
  img.addEventListener("error", () => why(s, a, picture, words), { once: true });
  img.src = s.thumbnail;
  picture.append(img);
}

// describe adds the slide's size and scale once its picture has been looked at.
async function describe(s, words) {
  try {
    const info = await api.slide(s.id);
    const text = [`${info.width} × ${info.height}`];
    if (info.mpp) text.push(`${Number(info.mpp.x.toPrecision(3))} µm/px`);
    if (info.objective_power) text.push(`${info.objective_power}×`);
    words.append(make("span", "meta", text.join(" · ")));
  } catch {
    // The picture is there: the card is good without this line.
  }
}

async function why(s, a, picture, words) {
  try {
    await api.slide(s.id);
    fail(a, picture, words, "No thumbnail could be made.");
  } catch (err) {
    fail(a, picture, words, err.message);
  }
}

function fail(a, picture, words, reason) {
  a.classList.add("failed");
  picture.replaceChildren("⊘");
  words.append(make("span", "reason", reason));
}
