// A canvas drawer that puts tiles on whole device pixels.
import OpenSeadragon from "openseadragon";

/** SnappedDrawer differs from OpenSeadragon's own in one thing: that one hides
 * the seams between tiles by drawing each a pixel larger, which blurs the slide
 * where its pixels and the screen's are of one size. Here the edges of tiles
 * are rounded to device pixels: no seams, and nothing is interpolated. In a
 * turned view there is no whole pixel to round to. */
export class SnappedDrawer extends OpenSeadragon.CanvasDrawer {
  upright() {
    return this.viewport.getRotation(true) % 360 === 0;
  }

  minimumOverlapRequired() {
    return !this.upright();
  }

  _drawTile(tile, ...rest) {
    if (this.upright()) snap(tile, OpenSeadragon.pixelDensityRatio);
    super._drawTile(tile, ...rest);
  }
}

function snap(tile, ratio) {
  for (const axis of ["x", "y"]) {
    const from = Math.round(tile.position[axis] * ratio), to = Math.round((tile.position[axis] + tile.size[axis]) * ratio);
    tile.position[axis] = from / ratio;
    tile.size[axis] = (to - from) / ratio;
  }
}
