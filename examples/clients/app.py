"""Asks the desk, with tools of its own. Needs Python alone, and outlives restarts of the server.

    gesta serve examples/desk &
    echo '["tue 10:00", "wed 14:00"]' > slots.json
    python3 examples/clients/app.py "Please call me back"
"""
import http.client, json, os, sys, time, urllib.error, urllib.request, uuid

SERVER = os.environ.get("GESTA_SERVER", "http://127.0.0.1:7450")
KEY = os.environ.get("GESTA_API_KEY")

BODIES = {"free_slots": lambda: json.load(open("slots.json")), "book_call": lambda slot: {"booked": slot}}
SLOT = {"type": "object", "required": ["slot"], "properties": {"slot": {"type": "string"}}}
TOOLS = [{"name": "free_slots", "description": "Lists when a colleague can call."},
         {"name": "book_call", "description": "Books a call.", "parameters": SLOT}]


def events(path, body):
    """What comes of a request, until the run waits or has ended; taken up again wherever it breaks off."""
    headers = {"content-type": "application/json", "accept": "text/event-stream", "idempotency-key": str(uuid.uuid4())}
    headers |= {"authorization": f"Bearer {KEY}"} if KEY else {}
    data, name, last = json.dumps(body).encode(), None, None
    while True:
        try:
            with urllib.request.urlopen(urllib.request.Request(SERVER + path, data, headers)) as stream:
                for line in map(lambda line: line.decode().rstrip("\n"), stream):
                    field, _, value = line.partition(": ")
                    name, last = value if field == "event" else name, value if field == "id" else last
                    if field == "data":
                        event = json.loads(value)
                        yield name, event
                        path, data = f"/v1/runs/{event['run']}/events", None
                    if line == "" and name in ("run.parked", "run.ended"):
                        return
        except urllib.error.HTTPError as refused:
            if "retry-after" not in refused.headers:
                sys.exit(refused.read().decode())
        except (OSError, http.client.HTTPException):
            pass
        headers |= {"last-event-id": last} if last else {}
        time.sleep(0.2)


path, body, trip, shown = "/v1/agents/desk/runs", {"input": sys.argv[1], "tools": TOOLS}, 0, {}
while True:
    for name, event in events(path, body):
        trip = event.get("trip", trip)
        if name in ("reply.delta", "reply.finished"):  # What is told again after a restart is shown once.
            text, offset, seen = event["text"].encode(), event.get("offset", 0), shown.get(trip, 0)
            print(text[max(0, seen - offset):].decode(), end="", flush=True)
            shown[trip] = max(seen, offset + len(text))
    if name == "run.ended" or not event["result"]["deferred"]:
        break
    held = [hold for hold in event["result"]["deferred"] if hold["name"] in BODIES]
    if not held:
        sys.exit("a person has to decide; look at GET /v1/holds")
    answers = [{"binding": hold["binding"], "result": BODIES[hold["name"]](**hold["arguments"])} for hold in held]
    path, body = f"/v1/runs/{event['run']}/answers", {"answers": answers}
print()
