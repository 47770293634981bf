// What could not be loaded is asked for again by OpenSeadragon; here it is said.

// Five more times, two seconds apart, once nothing else is on its way.
export const retryOptions = { tileRetryMax: 5, tileRetryDelay: 2000 };

export function tellFailures(viewer, notice) {
  const waiting = new Set(); // addresses that failed and will be asked again
  const tell = () => notice("tiles", waiting.size ? "Some parts could not be loaded; trying again…" : "");
  viewer.addHandler("tile-load-failed", async ({ tile, tries }) => {
    const url = tile.getUrl();
    if (tries <= retryOptions.tileRetryMax) {
      waiting.add(url);
      return tell();
    }
    waiting.delete(url);
    tell();
    notice("lost", `Some parts of the slide cannot be loaded${await reason(url)}.`);
  });
  viewer.addHandler("tile-loaded", ({ tile }) => {
    if (waiting.delete(tile.getUrl())) tell();
  });
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
