// The address of what is shown, as one picture made by the server.

/** regionOf is the shown rectangle at the shown scale, in device pixels. The
 * server does not turn pictures: a turned view's rectangle is the upright one
 * about the same centre. */
export function regionOf(viewer, lens, slide, plane) {
  const size = viewer.viewport.getContainerSize(), zoom = lens.zoom(), centre = lens.centre();
  const width = Math.round(size.x * lens.ratio()), height = Math.round(size.y * lens.ratio());
  const left = centre.x - width / zoom / 2, top = centre.y - height / zoom / 2;
  const url = new URL(slide.urls.region, document.baseURI);
  const asked = { x: Math.round(left), y: Math.round(top), width, height, downsample: 1 / zoom, format: "png" };
  for (const [k, v] of Object.entries(asked)) url.searchParams.set(k, v);
  for (const k of ["c", "z", "t"]) if (plane[k]) url.searchParams.set(k, plane[k]);
  return url.href;
}
