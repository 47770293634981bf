// Failed tiles are asked for again, ever more slowly, and quietly.
import { delay } from "./scale.js";

const tries = 7;

export function retryTiles(viewer, notice) {
  const failed = new Map(); // times failed, by the tile's address
  const waiting = new Set();
  const tell = () => notice("tiles", waiting.size ? "Some parts could not be loaded; trying again…" : "");
  viewer.addHandler("tile-load-failed", ({ tile, tiledImage, message }) => {
    if (/abort/i.test(message ?? "")) return;
    const url = tile.getUrl();
    const n = failed.get(url) ?? 0;
    failed.set(url, n + 1);
    if (n >= tries) {
      waiting.delete(url);
      notice("lost", "Some parts of the slide cannot be loaded.");
      tell();
      return;
    }
    waiting.add(url);
    tell();
    setTimeout(() => {
      if (viewer.world.getIndexOfItem(tiledImage) < 0) return forget(url);
      tile.exists = true;
      tile.loading = false;
      tiledImage.update(true);
      viewer.forceRedraw();
      // Out of sight it is not asked for again; then nothing is missing.
      setTimeout(() => { if (!tile.loading && !tile.loaded && tile.exists) forget(url); }, 1000);
    }, delay(n));
  });
  const forget = (url) => {
    failed.delete(url);
    if (waiting.delete(url)) tell();
  };
  viewer.addHandler("tile-loaded", ({ tile }) => forget(tile.getUrl()));
}
