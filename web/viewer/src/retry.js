// What could not be loaded is asked for again: twice by OpenSeadragon, then ever
// more slowly for as long as the page is open.
import { delay } from "./scale.js";

export const retryOptions = { tileRetryMax: 2, tileRetryDelay: 2000 };

export function tellFailures(viewer, notice) {
  const waiting = new Set(); // addresses that failed and will be asked again
  const lost = new Map(); // and how often those failed to the end
  const tell = () => notice("tiles", waiting.size ? "Some parts could not be loaded; trying again…" : "");
  viewer.addHandler("tile-load-failed", async ({ tile, tiledImage, tries }) => {
    const url = tile.getUrl();
    waiting.add(url);
    tell();
    if (tries <= retryOptions.tileRetryMax) return;
    waiting.delete(url);
    tell();
    const rounds = lost.get(url) ?? 0;
    lost.set(url, rounds + 1);
    setTimeout(() => again(tile, tiledImage), delay(rounds + 3));
    const why = await reason(url);
    if (lost.has(url)) notice("lost", `Some parts of the slide cannot be loaded${why}.`);
  });
  viewer.addHandler("tile-loaded", ({ tile }) => {
    const url = tile.getUrl();
    if (waiting.delete(url)) tell();
    if (lost.delete(url) && lost.size === 0) notice("lost", "");
  });

  function again(tile, tiledImage) {
    if (viewer.world.getIndexOfItem(tiledImage) < 0) return;
    tile.exists = true; // OpenSeadragon asks for it when it is next in view
    tiledImage.update(true);
    viewer.forceRedraw();
  }
}

// reason asks the server why, once more.
async function reason(url) {
  try {
    const answer = await fetch(url);
    return answer.ok ? "" : `: ${(await answer.json()).message}`;
  } catch {
    return ": the server does not answer";
  }
}
