// Follows a document, and asks for what it missed: cc observe.c -o observe -lzmq && ./observe PUBLISH ASK
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>  // It finds values in the JSON by their names; observe_czmq.c reads JSON with a library.
static char head[1 << 24], body[1 << 24], answer[1 << 24], request[80];  // what is longer is cut
static int on = 1, wait = 3000, room = (1 << 24) - 1, size;  // after 3000 ms a request is sent again
static char *after(char *text, char *name) { return (text = strstr(text, name)) ? text + strlen(name) : ""; }
static int part(void *socket, char *text) {  // one part of a message, or -1 if none comes in time
    return size = zmq_recv(socket, text, room, 0), text[size < 0 ? 0 : size < room ? size : room] = 0, size;
}
static void ask(void *req, char *text) { do zmq_send(req, text, strlen(text), 0); while (part(req, answer) < 0); }
int main(int count, char **address) {
    void *context = zmq_ctx_new(), *sub = zmq_socket(context, ZMQ_SUB), *req = zmq_socket(context, ZMQ_REQ);
    zmq_setsockopt(req, ZMQ_REQ_RELAXED, &on, sizeof on), zmq_setsockopt(req, ZMQ_REQ_CORRELATE, &on, sizeof on);
    zmq_setsockopt(req, ZMQ_RCVTIMEO, &wait, sizeof wait), zmq_setsockopt(sub, ZMQ_SUBSCRIBE, "document/prefs", 15);
    if (count < 3 || zmq_connect(sub, address[1]) || zmq_connect(req, address[2])) return 1;
    ask(req, "{\"store\":\"document/prefs\",\"dispatch\":{\"set\":{\"at\":\"/c\",\"value\":\"hello\"}},\"key\":\"c\"}");
    for (long last = 0; part(sub, head), part(sub, head), part(sub, body) >= 0; fflush(stdout)) {
        char *kind = after(head, "kind\":\""), *at = answer, *end; long new = atol(after(head, "sequence\":"));
        if (*kind == 'c' && atol(after(head, "previous\":")) > last) {  // something is missing
            sprintf(request, "{\"get\":\"document/prefs\",\"since\":%ld}", last), ask(req, request);
            last = atol(after(answer, "sequence\":")), *strrchr(answer, '}') = 0;
            if (!strstr(answer, "\"messages\":[")) printf("%ld state %s\n", last, after(answer, "\"state\":"));
            else for (; *(at = after(at, "{\"head\":")); printf("%ld change %.*s\n", last, (int)(end - at), at))
                last = atol(after(at, "sequence\":")), at = after(at, "body\":"),
                end = strstr(at, "},{\"head\":") ? strstr(at, "},{\"head\":") : strrchr(at, '}');
        }
        if (*kind != 'c' || new > last) printf("%ld %.*s %s\n", last = new, (int)strcspn(kind, "\""), kind, body);
}   }
