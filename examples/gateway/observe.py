"""Follows a document, and asks for what it missed: /usr/bin/python3 observe.py PUBLISH ASK"""
import json, sys, uuid, zmq

sub, req = zmq.Context.instance().socket(zmq.SUB), zmq.Context.instance().socket(zmq.REQ)
req.req_relaxed = req.req_correlate = True  # a request without an answer may be sent again
sub.connect(sys.argv[1])
req.connect(sys.argv[2])
sub.subscribe("document/prefs\0")
last = 0  # the sequence of the newest line

def ask(**request):
    while not req.send_json(request):  # again, until an answer comes
        if req.poll(3000): return req.recv_json()

def show(head, body):
    global last
    last = head["sequence"]  # 0 if it is an error: then the next change asks
    print(last, head["kind"], json.dumps(body, separators=(",", ":")), flush=True)

action = {"set": {"at": "/pyzmq", "value": "hello"}}
print(ask(store="document/prefs", dispatch=action, key=str(uuid.uuid4())), file=sys.stderr)
while True:
    head, body = [json.loads(part or "null") for part in sub.recv_multipart()[1:]]
    if head["kind"] == "change" and head["previous"] > last:  # something is missing
        answer = ask(get="document/prefs", since=last)
        for message in answer.get("messages", []): show(message["head"], message["body"])
        if "state" in answer: show({**answer, "kind": "state"}, answer["state"])  # too long ago
    if head["kind"] != "change" or head["sequence"] > last:  # what the answer had is old
        show(head, body if body is not None else head.get("message"))
