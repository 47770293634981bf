// A canvas drawer that puts tiles on whole device pixels.
import OpenSeadragon from "openseadragon";

/** SnappedDrawer differs from OpenSeadragon's own in one thing: that one hides
 * the seams between tiles by drawing each a pixel larger, which blurs the slide
 * where its pixels and the screen's are of one size. Here the edges of tiles
 * are rounded to device pixels: no seams, and nothing is interpolated. */
export class SnappedDrawer extends OpenSeadragon.CanvasDrawer {
  minimumOverlapRequired() {
    return !this.straight();
  }

  // straight says whether whole pixels of the turned picture are whole pixels of
  // the screen. The picture is turned about the canvas's middle.
  straight() {
    const turn = Math.abs(this.viewport.getRotation(true) % 180);
    return turn === 0 || (turn === 90 && (this.canvas.width + this.canvas.height) % 2 === 0);
  }

  _drawTile(tile, ...rest) {
    if (this.straight()) snap(tile, OpenSeadragon.pixelDensityRatio);
    super._drawTile(tile, ...rest);
  }
}

function snap({ position, size }, ratio) {
  for (const axis of ["x", "y"]) {
    const from = wholePixel(position[axis] * ratio), to = wholePixel((position[axis] + size[axis]) * ratio);
    position[axis] = from / ratio;
    size[axis] = Math.max(to - from, 1) / ratio;
  }
}

// wholePixel rounds the common edge of two tiles to the same pixel, although
// each comes to it by its own arithmetic.
function wholePixel(edge) {
  return Math.round(edge - 1e-4);
}
