// Asks the desk, with tools of its own. Needs Node 22.18 or later alone, and outlives restarts of the server.
//
//     gesta serve examples/desk &
//     echo '["tue 10:00", "wed 14:00"]' > slots.json
//     node examples/clients/app.ts "Please call me back"
import { readFile } from "node:fs/promises";

const { GESTA_SERVER: server = "http://127.0.0.1:7450", GESTA_API_KEY: key } = process.env;
const bodies: Record<string, (args: any) => Promise<unknown>> = {
  free_slots: async () => JSON.parse(await readFile("slots.json", "utf8")),
  book_call: async ({ slot }: { slot: string }) => ({ booked: slot }),
};
const parameters = { type: "object", required: ["slot"], properties: { slot: { type: "string" } } };
const tools = [{ name: "free_slots", description: "Lists when a colleague can call." },
  { name: "book_call", description: "Books a call.", parameters }];

/** What comes of a request, until the run waits or has ended; taken up again wherever it breaks off. */
async function* events(path: string, body: object): AsyncGenerator<any> {
  const headers: Record<string, string> = { accept: "text/event-stream", "content-type": "application/json" };
  Object.assign(headers, { "idempotency-key": crypto.randomUUID() }, key && { authorization: `Bearer ${key}` });
  let request: RequestInit = { method: "POST", body: JSON.stringify(body), headers };
  for (;;) {
    try {
      const response = await fetch(server + path, request);
      if (!response.ok && !response.headers.has("retry-after")) throw await response.text();
      let text = "";
      for await (const piece of response.ok ? response.body!.pipeThrough(new TextDecoderStream()) : []) {
        const blocks = (text + piece).split("\n\n");
        text = blocks.pop()!;
        for (const block of blocks) {
          const [name, data, id] = ["event", "data", "id"].map((it) => block.match(`(^|\\n)${it}: (.*)`)?.[2]);
          if (!name || !data) continue;
          const told = { name, data: JSON.parse(data) };
          if (id) headers["last-event-id"] = id;
          [path, request] = [`/v1/runs/${told.data.run}/events`, { headers }];
          yield told;
          if (name === "run.parked" || name === "run.ended") return;
        }
      }
    } catch (why) { if (typeof why === "string") throw why; }
    await new Promise((done) => setTimeout(done, 200));
  }
}

let path = "/v1/agents/desk/runs", body: object = { input: process.argv[2], tools }, trip = 0, shown: number[] = [];
for (let last: any; last?.name !== "run.ended"; ) {
  for await (last of events(path, body)) {
    trip = last.data.trip ?? trip;
    if (last.name !== "reply.delta" && last.name !== "reply.finished") continue;
    const { text, offset = 0 } = last.data, seen = shown[trip] ?? 0;
    process.stdout.write(Buffer.from(text).subarray(Math.max(0, seen - offset))); // What is told again is shown once.
    shown[trip] = Math.max(seen, offset + Buffer.byteLength(text));
  }
  const held = last.data.result.deferred.filter((hold: any) => hold.name in bodies);
  if (last.name === "run.parked" && !held.length) throw "a person has to decide; look at GET /v1/holds";
  const answer = async (hold: any) => ({ binding: hold.binding, result: await bodies[hold.name](hold.arguments) });
  [path, body] = [`/v1/runs/${last.data.run}/answers`, { answers: await Promise.all(held.map(answer)) }];
}
console.log();
