// Follows a document, and asks for what it missed: cc observe_czmq.c -o observe_czmq -lczmq -lzmq -lcjson
#include <cjson/cJSON.h>
#include <czmq.h>
#define ITEM cJSON_GetObjectItem
static double last;  // the sequence of the newest line
static double number(cJSON *head, char *name) { return ITEM(head, name) ? ITEM(head, name)->valuedouble : 0; }
static void show(cJSON *head, const char *kind, char *body) {
    printf("%.0f %s %s\n", last = number(head, "sequence"), kind, body), free(body);
}
static cJSON *ask(zsock_t *req, const char *request) {
    char *answer;  // NULL if none comes in 3 s; then the request is sent again
    do zstr_send(req, request); while (!(answer = zstr_recv(req)));
    cJSON *json = cJSON_Parse(answer); free(answer); return json;
}
int main(int count, char **address) {
    zsys_handler_set(NULL);  // so that Ctrl-C ends the program
    zsock_t *sub = zsock_new_sub(count == 3 ? address[1] : "", NULL), *req = zsock_new_req(address[2]);
    zmq_setsockopt(zsock_resolve(sub), ZMQ_SUBSCRIBE, "document/prefs", 15);  // 15: with the zero byte
    zsock_set_req_relaxed(req, 1), zsock_set_req_correlate(req, 1), zsock_set_rcvtimeo(req, 3000);
    ask(req, "{\"store\":\"document/prefs\",\"dispatch\":{\"set\":{\"at\":\"/czmq\",\"value\":1}},\"key\":\"czmq\"}");
    for (char *topic, *text, *body, request[80]; zstr_recvx(sub, &topic, &text, &body, NULL) > 0; fflush(stdout)) {
        cJSON *head = cJSON_Parse(text), *answer = NULL, *one; char *kind = ITEM(head, "kind")->valuestring;
        sprintf(request, "{\"get\":\"document/prefs\",\"since\":%.0f}", last);
        if (*kind == 'c' && number(head, "previous") > last) answer = ask(req, request);  // something is missing
        if (ITEM(answer, "state")) show(answer, "state", cJSON_PrintUnformatted(ITEM(answer, "state")));
        cJSON_ArrayForEach(one, ITEM(answer, "messages"))
            show(ITEM(one, "head"), "change", cJSON_PrintUnformatted(ITEM(one, "body")));
        if (*kind != 'c' || number(head, "sequence") > last) show(head, kind, strdup(body));
        free(topic), free(text), free(body), cJSON_Delete(head), cJSON_Delete(answer);
}   }
