// A Node program behind heed: only the base URL is another.
//
//     go run ./cmd/heed up
//     node examples/node/call.mjs hello

const base = process.env.HEED_BASE ?? "http://127.0.0.1:8642/demo";

const response = await fetch(`${base}/${process.argv[2] ?? "node"}`, {
  // Give up after 30 s. heed then answers 504 and says when to try again.
  headers: { "Heed-Budget": "30s" },
  // The client's own timeout is longer than the budget: heed ends the call.
  signal: AbortSignal.timeout(40_000),
});
const answer = await response.json();
if (response.headers.get("Heed-Origin") === "gateway") {
  console.error(`heed: ${answer.title}; retry after ${response.headers.get("Retry-After") ?? "some time"} s`);
  process.exit(1);
}
console.log(answer.message);
console.error("attempts:", response.headers.get("Heed-Attempts"));
