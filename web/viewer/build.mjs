// Bundles src into dist: three pages, their scripts and styles under assets/ with
// a hash of the content in each name, and the licences of what is bundled.
import { build } from "esbuild";
import { readFile, writeFile, readdir, rm, mkdir } from "node:fs/promises";
import path from "node:path";

const pages = { "index.html": "gallery", "view.html": "viewer", "status.html": "status" };

// clean empties dist but for .gitkeep, without which go:embed finds no folder.
async function clean() {
  await mkdir("dist", { recursive: true });
  for (const name of await readdir("dist")) {
    if (name !== ".gitkeep") await rm(path.join("dist", name), { recursive: true });
  }
}

// bundle returns the output's address by entry name and extension.
async function bundle() {
  const result = await build({
    entryPoints: Object.values(pages).flatMap((n) => [`src/${n}.js`, `src/${n}.css`]),
    bundle: true, minify: true, format: "esm", target: ["chrome100", "firefox100", "safari15"],
    outdir: "dist/assets", entryNames: "[name]-[hash]", legalComments: "none", metafile: true,
  });
  const out = {};
  for (const [file, meta] of Object.entries(result.metafile.outputs)) {
    if (!meta.entryPoint) continue;
    out[path.basename(meta.entryPoint)] = path.relative("dist", file).split(path.sep).join("/");
  }
  return { out, inputs: Object.keys(result.metafile.inputs) };
}

// licenses is the text of the licence of every package with a bundled file.
async function licenses(inputs) {
  const names = new Set();
  for (const file of inputs) {
    const m = file.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//);
    if (m) names.add(m[1]);
  }
  let text = "";
  for (const name of [...names].sort()) {
    const dir = path.join("node_modules", name);
    const { version, license } = JSON.parse(await readFile(path.join(dir, "package.json"), "utf8"));
    const file = (await readdir(dir)).find((f) => /^licen[cs]e/i.test(f));
    if (!file) throw new Error(`${name}: no licence text`);
    const body = await readFile(path.join(dir, file), "utf8");
    text += `${name} ${version} (${license})\n\n${body.trim()}\n\n\n`;
  }
  return text;
}

await clean();
const { out, inputs } = await bundle();
await writeFile("dist/licenses.txt", await licenses(inputs));
for (const [page, name] of Object.entries(pages)) {
  let html = await readFile(`src/${page}`, "utf8");
  for (const ext of ["js", "css"]) {
    const from = `assets/${name}.${ext}`;
    if (!html.includes(from)) throw new Error(`${page}: does not name ${from}`);
    html = html.replace(from, out[`${name}.${ext}`]);
  }
  await writeFile(`dist/${page}`, html);
}
