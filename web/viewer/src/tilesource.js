// The slide as OpenSeadragon asks for it: Deep Zoom levels at the addresses that
// the server may let be cached for good.

export function tileSource(slide, plane) {
  const [path, query] = slide.deepzoom.url.split("?");
  const files = path.replace(/\.dzi$/, "_files");
  const extra = ["c", "z", "t"].filter((k) => plane[k]).map((k) => `&${k}=${plane[k]}`).join("");
  return {
    width: Number(slide.width), height: Number(slide.height),
    tileSize: slide.deepzoom.tile, tileOverlap: slide.deepzoom.overlap,
    minLevel: Math.min(8, slide.deepzoom.max_level), maxLevel: slide.deepzoom.max_level,
    getTileUrl: (level, col, row) => `${files}/${level}/${col}_${row}.jpg?${query}${extra}`,
  };
}
