// The figures of status.json in people's words. A key without a word here is
// shown under its own name, so that nothing is left out.
import { bytes, short, whole } from "./format.js";

const titles = {
  build: "This server", requests: "Requests", requests_by_status: "Answers by status", answers: "Pixel answers",
  decodes: "Decoding", unsupported: "Not decoded, by reason", caches: "Caches", slides: "Slides", pyramids: "Built levels",
  batches: "Batches of patches", reads: "Reading tiles",
  devices: "GPUs", devices_by_cpu: "Decoded by the CPU for a GPU, by reason", devices_stages_ns: "Time on GPUs in ns, by stage",
};

const words = {
  "build.go": "Go", "build.decoder": "Decodes JPEG by", "build.exact": "Decodes exactly", "build.uptime_seconds": "Up for",
  "requests.in_flight": "Under way now", "requests.sent_bytes": "Sent",
  "decodes.running": "Running now", "decodes.waiting": "Waiting now", "decodes.asked": "Asked for", "decodes.whole": "Tiles decoded whole",
  "decodes.partial": "… in part", "decodes.reduced": "… at a fraction of their size", "decodes.cropped": "Cropped without decoding",
  "decodes.encoded": "Pictures encoded", "decodes.encodes": "Encodings asked for", "decodes.dropped": "Dropped, nobody waited",
  "decodes.busy": "Refused, queue full", "decodes.corrupt": "Corrupt", "decodes.limited": "Over the limit", "decodes.failed": "Failed",
  "decodes.previews": "Previews given",
  "batches.making": "Being made now", "batches.waiting": "Waiting now", "batches.memory_bytes": "Memory taken", "batches.refused": "Refused, too many waited",
  "reads.tiles": "Tiles read", "reads.reads": "… in so many reads", "reads.tile_bytes": "Bytes of the tiles", "reads.read_bytes": "Bytes read",
  "reads.ahead": "Regions loaded ahead", "reads.ahead_used": "… and asked for",
  "slides.open": "Open now", "slides.known": "Known", "slides.scanning": "Reading the folders", "slides.failed": "Could not be opened",
  "slides.checked": "Files looked at again", "slides.replaced": "Files replaced", "slides.evicted": "Closed for others", "slides.scans": "Readings of the folders",
  "pyramids.building": "Building now", "pyramids.taken": "Found from before", "pyramids.evicted": "Given up for others",
  "devices.decoder": "Decoder", "devices.state": "State", "devices.why": "Why it is off", "devices.decoded": "Tiles decoded", "devices.beside": "… by the CPU beside it",
  "devices.by_cpu": "… by the CPU in its place", "devices.batches": "Calls of the decoder", "devices.made": "Patches made", "devices.checked": "Compared with the CPU's, equal",
  "devices.waiting": "Tiles waiting now", "devices.starts": "Starts of the worker", "devices.strikes": "Deaths of the worker", "devices.arena_bytes": "Device memory",
  "devices.used_bytes": "… taken", "devices.slots": "… in so many pieces",
  p50_ms: "Median", p99_ms: "99 %", hit: "From a cache", miss: "Made anew", bytes: "Held", budget_bytes: "Budget", hit_share: "Hits of all",
  joined: "Waited for another's load", cancelled: "Left by all", evicted: "Given up for others", refused: "Too large to keep", failed: "Failed",
};

const plain = (key) => key.charAt(0).toUpperCase() + key.slice(1).replaceAll("_", " ");

export const title = (section) => titles[section] ?? plain(section);

/** word names a value: by its section and key, or by its key alone. */
export const word = (section, key) => words[`${section}.${key}`] ?? words[key] ?? plain(key.replace(/_(bytes|ms|seconds|share)$/, ""));

/** figure is a value as people read it: the key's ending says what it counts. */
export function figure(key, value) {
  if (value === null || value === "") return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (key === "started") return value.replace("T", " ").replace("Z", " UTC");
  if (typeof value !== "number") return value;
  if (/(^|_)bytes$/.test(key)) return bytes(value);
  if (/_ms$/.test(key)) return `${short(value)} ms`;
  if (/_seconds$/.test(key)) return duration(value);
  if (/_share$/.test(key)) return `${(100 * value).toFixed(1)} %`;
  return whole(value);
}

/** duration is whole seconds in the two largest units. */
export function duration(s) {
  const parts = [[Math.floor(s / 86400), "d"], [Math.floor(s / 3600) % 24, "h"], [Math.floor(s / 60) % 60, "min"], [s % 60, "s"]];
  const first = parts.findIndex(([n]) => n > 0);
  if (first < 0) return "0 s";
  return parts.slice(first, first + 2).map(([n, u]) => `${n} ${u}`).join(" ");
}

// order is how ways and caches stand beside one another; others follow.
const order = { answers: ["stored", "cropped", "rendered", "empty"], caches: ["answers", "pixels", "regions", "patches"] };

/** columns are the names of what a section holds several of alike (caches, ways
 * of an answer), null for a plain list. */
export function columns(name, section) {
  const values = Object.values(section), first = order[name] ?? [];
  if (!values.length || values.some((v) => v === null || typeof v !== "object")) return null;
  return [...first.filter((k) => k in section), ...Object.keys(section).filter((k) => !first.includes(k))];
}
