// Asks the desk, with tools of its own. Needs Node 22.18 or later alone, and outlives restarts of the server.
//
//     gesta serve examples/desk &
//     echo '["tue 10:00", "wed 14:00"]' > slots.json
//     node examples/clients/app.ts "Please call me back"
import { readFile } from "node:fs/promises";

type Hold = { name: string; arguments: any; binding: object };
type Told = { name: string; data: { run: string; text?: string; result?: { deferred: Hold[] } } };

const { GESTA_SERVER: server = "http://127.0.0.1:7450", GESTA_API_KEY: key } = process.env;
const bodies: Record<string, (args: any) => Promise<unknown>> = {
  free_slots: async () => JSON.parse(await readFile("slots.json", "utf8")),
  book_call: async ({ slot }: { slot: string }) => ({ booked: slot }),
};
const parameters = { type: "object", required: ["slot"], properties: { slot: { type: "string" } } };
const tools = [
  { name: "free_slots", description: "Lists when a colleague can call." },
  { name: "book_call", description: "Books a call.", parameters },
];

/** What comes of a request, until the run waits or has ended; taken up again wherever it breaks off. */
async function* events(path: string, body: object): AsyncGenerator<Told> {
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
          const told: Told = { name, data: JSON.parse(data) };
          if (id) headers["last-event-id"] = id;
          [path, request] = [`/v1/runs/${told.data.run}/events`, { headers }];
          yield told;
          if (told.name === "run.parked" || told.name === "run.ended") return;
        }
      }
    } catch (why) { if (typeof why === "string") throw why; }
    await new Promise((done) => setTimeout(done, 200));
  }
}

let [path, body]: [string, object] = ["/v1/agents/desk/runs", { input: process.argv[2], tools }];
for (let last: Told | undefined; last?.name !== "run.ended"; ) {
  for await (last of events(path, body)) if (last.name === "reply.delta") process.stdout.write(last.data.text!);
  const held = (last!.data.result?.deferred ?? []).filter((hold) => hold.name in bodies);
  if (last!.name === "run.parked" && !held.length) throw "a person has to decide; look at GET /v1/holds";
  const answer = async (hold: Hold) => ({ binding: hold.binding, result: await bodies[hold.name](hold.arguments) });
  [path, body] = [`/v1/runs/${last!.data.run}/answers`, { answers: await Promise.all(held.map(answer)) }];
}
console.log();
