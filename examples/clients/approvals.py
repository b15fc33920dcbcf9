"""Asks in Slack whether a held call may run, and answers the hold with the button that was pressed. Needs Python alone.

    export GESTA_WEBHOOK_SECRET=whsec_… SLACK_SIGNING_SECRET=… SLACK_WEBHOOK_URL=https://hooks.slack.com/services/…
    python3 examples/clients/approvals.py 7460 &
    gesta serve examples/desk --webhook http://127.0.0.1:7460/gesta

Slack sends what is pressed to the app's "Request URL": https://your-host/slack, passed on to port 7460.
"""
import base64, hashlib, hmac, json, os, sys, time, urllib.error, urllib.parse, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SERVER = os.environ.get("GESTA_SERVER", "http://127.0.0.1:7450")
KEY = {"authorization": f"Bearer {os.environ['GESTA_API_KEY']}"} if "GESTA_API_KEY" in os.environ else {}
GESTA = [base64.b64decode(key.removeprefix("whsec_")) for key in os.environ["GESTA_WEBHOOK_SECRET"].split()]
SLACK, SLACK_URL = os.environ["SLACK_SIGNING_SECRET"].encode(), os.environ["SLACK_WEBHOOK_URL"]

def is_signed(expected, given, at):
    """Compared in constant time, and not older than five minutes: nobody forges a request or sends one again later."""
    fits = [hmac.compare_digest(one.encode(), other.encode()) for one in expected for other in given.split()]
    return any(fits) and at.isdecimal() and abs(time.time() - int(at)) < 300

def from_gesta(headers, body):
    at, signed = headers.get("webhook-timestamp", ""), [headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")]
    macs = [hmac.digest(key, ".".join(signed).encode() + b"." + body, "sha256") for key in GESTA]
    return is_signed(["v1," + base64.b64encode(mac).decode() for mac in macs], headers.get("webhook-signature", ""), at)

def from_slack(headers, body):
    at = headers.get("x-slack-request-timestamp", "")
    mac = hmac.new(SLACK, f"v0:{at}:".encode() + body, hashlib.sha256).hexdigest()
    return is_signed([f"v0={mac}"], headers.get("x-slack-signature", ""), at)

def post(url, body, **headers):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"} | headers)
    return urllib.request.urlopen(request, timeout=60).read()

def ask(data):
    """What the agent wants to do, whole: a call that does not fit into a message is decided on in the console alone."""
    hold, binding = data["hold"], data["hold"]["binding"]
    page = f"{SERVER}/console/holds/{binding['run_id']}/{urllib.parse.quote(binding['call_id'], safe='')}"
    wants = f"{data['agent']} wants to run {hold['name']} with {json.dumps(hold['arguments'])} ({hold['reason']})"
    wants = wants.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    fits = len(wants) < 2500
    text = {"type": "mrkdwn", "text": f"{wants if fits else 'A call waits.'}\n<{page}|Look at it>"}
    button = {"type": "button", "value": json.dumps(binding)}
    buttons = [button | {"action_id": word, "text": {"type": "plain_text", "text": word}} for word in ("approve", "deny")]
    actions = [{"type": "actions", "elements": buttons}] if fits else []
    post(SLACK_URL, {"text": "A call waits for you", "blocks": [{"type": "section", "text": text}] + actions})

def answer(press):
    """The key is that of the press, so that a press which Slack sends again is the same answer."""
    who, action = press["user"]["username"], press["actions"][0]
    binding, word = json.loads(action["value"]), action["action_id"]
    said = {"approve": True} if word == "approve" else {"deny": f"{who} said no"}
    key = {"idempotency-key": f"slack-{press['trigger_id']}"} | KEY
    try:
        post(f"{SERVER}/v1/runs/{binding['run_id']}/answers", {"answers": [{"binding": binding} | said]}, **key)
        came = f"{who}: {word}"
    except urllib.error.HTTPError as refused:
        came = f"{who}: {word}, but {json.load(refused)['detail']}"
    post(press["response_url"], {"replace_original": True, "text": came})

class Door(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(min(int(self.headers.get("content-length", 0)), 1 << 20))
        check = {"/gesta": from_gesta, "/slack": from_slack}.get(self.path)
        is_known = check is not None and check(self.headers, body)
        if is_known and self.path == "/gesta" and (told := json.loads(body))["type"] == "hold.opened":
            ask(told["data"])  # Where Slack does not take it, nobody answers here, and Gesta sends it again.
        self.send_response(200 if is_known else 401)
        self.send_header("content-length", "0")
        self.end_headers()
        if is_known and self.path == "/slack":  # Slack wants to be answered at once, and the run may take its time.
            answer(json.loads(urllib.parse.parse_qs(body.decode())["payload"][0]))

server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Door)
print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
