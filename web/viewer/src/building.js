// A slide without a pyramid: its upper levels are being made. Meanwhile previews
// are shown; they are loaded anew at the end.
import * as api from "./api.js";

export function watchBuilding(viewer, slide, notice) {
  let state = slide.building;
  if (!state) return;
  const tell = () => {
    const share = Math.floor((100 * Number(state.done)) / Math.max(Number(state.total), 1));
    notice("building", `Preparing overview levels, ${share} %`);
  };
  const look = async () => {
    try {
      state = (await api.slide(slide.id)).building;
    } catch {
      // The next look may be luckier.
    }
    if (state) {
      tell();
      setTimeout(look, 2000);
      return;
    }
    notice("building", "");
    viewer.world.resetItems();
    viewer.forceRedraw();
  };
  tell();
  setTimeout(look, 1000);
}
