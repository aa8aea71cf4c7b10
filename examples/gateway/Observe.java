// Follows a document, and asks for what it missed: java -cp jeromq.jar:gson.jar Observe.java PUBLISH ASK
import com.google.gson.*;
import org.zeromq.ZMQ;
class Observe {
    record Head(String kind, long sequence, long previous) {}
    record Message(Head head, JsonElement body) {}
    record Answer(Message[] messages, JsonElement state, long sequence) {}
    static ZMQ.Context context = ZMQ.context(1);
    static long last = 0;  // the sequence of the newest line
    static Answer ask(String address, String request) {  // again with a new socket, if no answer comes
        try (ZMQ.Socket req = context.socket(ZMQ.REQ)) {
            req.setLinger(0); req.setReceiveTimeOut(3000); req.connect(address);
            String answer = req.send(request.replace('\'', '"')) ? req.recvStr() : null;
            return answer == null ? ask(address, request) : new Gson().fromJson(answer, Answer.class);
        }
    }
    static void show(long n, String kind, Object body) { System.out.printf("%d %s %s%n", last = n, kind, body); }
    public static void main(String[] address) {
        ZMQ.Socket sub = context.socket(ZMQ.SUB);
        sub.connect(address[0]); sub.subscribe("document/prefs\0".getBytes());
        ask(address[1], "{'store':'document/prefs','dispatch':{'set':{'at':'/java','value':'hello'}},'key':'java'}");
        while (sub.recv() != null) {  // the topic; then come the head and the body
            Head head = new Gson().fromJson(sub.recvStr(), Head.class); String body = sub.recvStr();
            if (head.kind.equals("change") && head.previous > last) {  // something is missing
                Answer answer = ask(address[1], "{'get':'document/prefs','since':" + last + "}");
                if (answer.state != null) show(answer.sequence, "state", answer.state);
                else for (var message : answer.messages) show(message.head.sequence, "change", message.body);
            }
            if (!head.kind.equals("change") || head.sequence > last) show(head.sequence, head.kind, body);
}   }   }
