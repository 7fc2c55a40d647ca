/* A client and a server in one program: the server returns what the client sends. */
#include "bentpipe.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int ok, const char *what) {
    if (!ok) {
        fprintf(stderr, "%s: %s\n", what, bp_error());
        exit(1);
    }
}

static void *serve(void *argument) {
    bp_stream *stream = bp_accept(argument, 10000);
    check(stream != NULL, "accept");
    char buffer[4096];
    ssize_t len;
    while ((len = bp_read(stream, buffer, sizeof buffer)) > 0)
        for (ssize_t at = 0; at < len;) {
            ssize_t written = bp_write(stream, buffer + at, (size_t)(len - at));
            check(written > 0, "write");
            at += written;
        }
    check(len == 0, "read");
    check(bp_finish(stream) == 0, "finish");
    bp_stream_free(stream);
    return NULL;
}

int main(void) {
    char key_a[45], public_a[45], key_b[45], public_b[45], address[32];
    bp_generate_key(key_a, public_a);
    bp_generate_key(key_b, public_b);
    const char *clients[] = {public_a};
    bp_endpoint *server = bp_listen("127.0.0.1:0", key_b, clients, 1);
    check(server != NULL, "listen");
    snprintf(address, sizeof address, "127.0.0.1:%u", bp_port(server));
    bp_endpoint *client = bp_connect(address, key_a, public_b);
    check(client != NULL, "connect");

    pthread_t thread;
    check(pthread_create(&thread, NULL, serve, server) == 0, "thread");
    bp_stream *stream = bp_open(client, "echo", 7);
    check(stream != NULL, "open");
    const char *text = "hello over XSTP";
    check(bp_write(stream, text, strlen(text)) == (ssize_t)strlen(text), "write");
    check(bp_finish(stream) == 0, "finish");
    char received[64] = "";
    size_t have = 0;
    ssize_t len;
    while ((len = bp_read(stream, received + have, sizeof received - 1 - have)) > 0)
        have += (size_t)len;
    check(len == 0, "read");
    bp_stream_free(stream);
    pthread_join(thread, NULL);
    check(bp_endpoint_free(client, 10000) == 0, "close");
    check(bp_endpoint_free(server, 10000) == 0, "close");

    bp_endpoint *wrong = bp_connect("127.0.0.1:1", "no key", public_b);
    if (wrong != NULL || strlen(bp_error()) == 0)
        return 2;
    puts(received);
    return strcmp(received, text) != 0;
}
