-- wrk: asks for paths of the file named by $PATHS: at random, or with ONCE=1
-- each one once, in the file's order (wrapped says whether they ran out).
local paths, at, once = {}, 0, os.getenv("ONCE") == "1"
for line in io.lines(os.getenv("PATHS")) do paths[#paths + 1] = line end
math.randomseed(tonumber(os.getenv("SEED") or "1"))
request = function()
  at = at + 1
  return wrk.format("GET", paths[once and (at - 1) % #paths + 1 or math.random(#paths)])
end
done = function(summary, latency)
  local e = summary.errors
  io.write(string.format("RESULT %f %d %f %f %d\n", summary.requests / (summary.duration / 1e6),
    e.status + e.connect + e.read + e.write + e.timeout,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000, (once and summary.requests > #paths) and 1 or 0))
end
